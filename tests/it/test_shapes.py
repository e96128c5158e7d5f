"""Every shape of the interop suite's matrix through the daemon under the sanitizers, judged by model and auditor alone."""

import types

import pytest

import frazil
from support import audit  # puts tests/interop on the path
import auditor
import matrix_suite as suite


@pytest.fixture(scope="module")
def client(daemon):
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["shapes"], "properties": {}})
    with frazil.Client(daemon.rpc) as c:
        yield c


CELLS = [(spec, shape, False, False) for spec in suite.SPECS for shape in suite.SHAPES] + [
    ("evolved", shape, True, True) for shape in suite.SHAPES]


@pytest.mark.parametrize("spec,shape,branch,upgraded", CELLS)
def test_shape(daemon, client, spec, shape, branch, upgraded):
    models = suite.cell(types.SimpleNamespace(uri=daemon.uri), client, "shapes", spec, shape, branch, upgraded)
    for model in models:
        assert model.differences(auditor.raw_rows(daemon.uri, model.name, model.ref), True) == []
    audit.clean(daemon, models[0].name)
