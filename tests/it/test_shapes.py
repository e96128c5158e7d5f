"""Every shape of the interop suite through the daemon under the sanitizers, judged by model and auditor alone."""

import types

import pytest

import frazil
from support import audit  # puts tests/interop on the path
import frazil_suite as suite


@pytest.fixture(scope="module")
def client(daemon):
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["shapes"], "properties": {}})
    with frazil.Client(daemon.rpc) as c:
        yield c


@pytest.mark.parametrize("shape", suite.SHAPES)
@pytest.mark.parametrize("spec", suite.SPECS)
def test_shape(daemon, client, spec, shape):
    w = suite.Writer(types.SimpleNamespace(uri=daemon.uri), client, "shapes", "%s_%s" % (spec, shape), spec)
    suite.build(w, suite.SHAPES[shape])
    assert w.model.differences(audit.rows(daemon, w.model.name), True) == []
    audit.clean(daemon, w.model.name)
