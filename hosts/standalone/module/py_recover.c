#include "hosts/standalone/module/py_recover.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/plugin_client.h"

const char kpti_recover_doc[] = "recover(plugin, journal, path): writes the execution trace PATH "
                                "from the journal of a killed process";

static kpt_status recover(const char *plugin, const char *journal, const char *path,
                          kpti_session_error *error)
{
    kpti_plugin_client client;
    kpt_status status = kpti_plugin_client_open(&client, plugin, NULL, error);
    if (status != KPT_OK) return status;
    status = kpti_plugin_client_recover(&client, journal, path, error);
    kpti_plugin_client_close(&client);
    return status;
}

PyObject *kpti_recover_call(PyObject *module, PyObject *args)
{
    kpti_session_error error;
    kpt_status status;
    PyObject *plugin = NULL;
    PyObject *journal = NULL;
    PyObject *path = NULL;
    (void)module;
    if (PyArg_ParseTuple(args, "O&O&O&", PyUnicode_FSConverter, &plugin, PyUnicode_FSConverter,
                         &journal, PyUnicode_FSConverter, &path)) {
        Py_BEGIN_ALLOW_THREADS;
        status = recover(PyBytes_AsString(plugin), PyBytes_AsString(journal),
                         PyBytes_AsString(path), &error);
        Py_END_ALLOW_THREADS;
        if (status != KPT_OK) (void)kpti_raise(&error, NULL);
    }
    Py_XDECREF(plugin);
    Py_XDECREF(journal);
    Py_XDECREF(path);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
