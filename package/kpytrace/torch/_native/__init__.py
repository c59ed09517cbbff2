"""torch.profiler on kpytrace's own recording, without Kineto: the mode "native".

torch's own classes stay. seam.py replaces the functions that they call, session.py records, and result.py has the
object that a profiler keeps as its result.
"""
