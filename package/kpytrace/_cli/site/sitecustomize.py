"""The start hook of `kpytrace run` without an installed kpytrace. Python imports this module at its start. The
module starts the trace, and then imports the sitecustomize of the user, if there is one."""

import os
import sys

_ours = os.environ.get("PYTHONPATH", "")
_before = os.environ.pop("KPYTRACE_PATH", None)
if _before is not None:
    if _before:
        os.environ["PYTHONPATH"] = _before
    else:
        os.environ.pop("PYTHONPATH", None)
_here = os.path.dirname(os.path.abspath(__file__))
_package = os.path.dirname(os.path.dirname(os.path.dirname(_here)))
sys.path[:] = [folder for folder in sys.path if folder != _here]
_self = sys.modules.pop("sitecustomize")
sys.path.insert(0, _package)
try:
    from kpytrace import _startup
finally:
    sys.path.remove(_package)
_startup.start()
# For the Python processes that this program starts.
if _before is not None and (os.environ.get("KPYTRACE") or os.environ.get("KPYTRACE_MEMORY")):
    os.environ["KPYTRACE_PATH"], os.environ["PYTHONPATH"] = _before, _ours
try:
    import sitecustomize  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = _self
