"""Every deployment file is valid for the installed Ray, and safe as it stands."""

import ipaddress
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from prme_ray.ingress import FASTEST
from tests.architecture import ROOT

OPS = ROOT / "docs" / "ops"
CLUSTERS = (ROOT / "cluster.yaml", OPS / "cluster-local.yaml")


def read(path):
    return yaml.safe_load(path.read_text("utf-8"))


def served():
    """The Serve configurations in the repository, by file."""
    service = read(OPS / "rayservice.yaml")["spec"]["serveConfigV2"]
    return {"serve.yaml": read(ROOT / "serve.yaml"), "rayservice.yaml": yaml.safe_load(service)}


@pytest.fixture(scope="module")
def schema():
    from ray.serve.schema import ServeDeploySchema

    return ServeDeploySchema


def known(model, given):
    """Assert that a model has the keys given, at every level; Serve's own schema lets unknown ones pass."""
    for key, value in given.items():
        assert key in model.model_fields, f"{key} is not one of {sorted(model.model_fields)}"
        inner = getattr(model.model_fields[key].annotation, "model_fields", None)
        if inner is not None and isinstance(value, dict):
            known(model.model_fields[key].annotation, value)


@pytest.mark.parametrize("name", ["serve.yaml", "rayservice.yaml"])
def test_serve_takes_the_file_and_knows_every_key(schema, name):
    from ray.serve.schema import DeploymentSchema, ServeApplicationSchema

    given = served()[name]
    schema.model_validate(given)
    known(schema, {key: value for key, value in given.items() if key != "applications"})
    for application in given["applications"]:
        known(ServeApplicationSchema, application)
        for deployment in application["deployments"]:
            known(DeploymentSchema, deployment)


@pytest.mark.parametrize("name", ["serve.yaml", "rayservice.yaml"])
def test_the_builder_takes_the_arguments_and_makes_the_deployments_named(name):
    from prme_ray.serve import ServeArgs, build

    for application in served()[name]["applications"]:
        built = build(ServeArgs.model_validate(application["args"]))
        assert [one["name"] for one in application["deployments"]] == [built._bound_deployment.name]


def test_the_key_check_finds_a_wrong_key(schema):
    with pytest.raises(AssertionError, match="hots is not one of"):
        known(schema, {"http_options": {"hots": "127.0.0.1"}})


@pytest.mark.parametrize("name", ["serve.yaml", "rayservice.yaml"])
def test_queues_are_bounded_and_refusals_say_when_to_come_back(schema, name):
    for application in schema.model_validate(served()[name]).applications:
        assert application.import_path == "prme_ray.serve:build"
        for deployment in application.deployments:
            assert 0 < deployment.max_queued_requests <= 1024
            assert 0 < deployment.max_ongoing_requests <= 1024
            assert deployment.backpressure_config.status_code == 503
            assert deployment.backpressure_config.retry_after_s > 0


def test_the_service_of_one_machine_listens_on_loopback(schema):
    options = schema.model_validate(served()["serve.yaml"]).http_options
    assert ipaddress.ip_address(options.host).is_loopback
    assert served()["serve.yaml"]["http_options"]["host"] == options.host  # stated, not a default


def test_a_service_that_others_reach_has_keys():
    for given in served().values():
        if not ipaddress.ip_address(given["http_options"]["host"]).is_loopback:
            assert all(application["args"]["keys_file"] for application in given["applications"])


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.name)
def test_ray_s_launcher_takes_the_cluster(path):
    import ray
    from ray.autoscaler._private.util import prepare_config, validate_config

    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text("utf-8"))
    jsonschema.validate(read(path), schema)
    validate_config(prepare_config(read(path)))  # and with its own defaults filled in


def test_the_cluster_has_head_cpu_and_gpu_nodes():
    given = read(ROOT / "cluster.yaml")
    types = given["available_node_types"]
    assert set(types) == {"head", "cpu_worker", "gpu_worker"}
    assert given["head_node_type"] == "head"
    assert [name for name, node in types.items() if node["resources"].get("GPU")] == ["gpu_worker"]
    # What shard groups may ask for, so that they land on CPU workers and nowhere else.
    assert [name for name, node in types.items() if node["resources"].get("shards")] == ["cpu_worker"]
    workers = [node["max_workers"] for name, node in types.items() if name != "head"]
    assert sum(workers) <= given["max_workers"]


def test_ray_starts_with_the_fastest_ingress_on_every_node():
    given = read(ROOT / "cluster.yaml")
    for commands in (given["head_start_ray_commands"], given["worker_start_ray_commands"]):
        (start,) = [command for command in commands if "ray start" in command]
        assert [name for name, value in FASTEST.items() if f"{name}={value} " not in start] == []


def test_kubernetes_gives_every_pod_the_same_environment_and_store():
    spec = read(OPS / "rayservice.yaml")["spec"]["rayClusterConfig"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    assert [group["groupName"] for group in spec["workerGroupSpecs"]] == ["cpu", "gpu"]
    for group in groups:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        environment = {one["name"]: one.get("value") for one in container["env"]}
        assert FASTEST.items() <= environment.items()
        assert "PRME_DATABASE_URL" in environment
        assert {one["name"] for one in container["volumeMounts"]} <= {one["name"] for one in pod["volumes"]}


def test_pods_and_files_name_the_installed_ray():
    import ray

    assert read(OPS / "rayservice.yaml")["spec"]["rayClusterConfig"]["rayVersion"] == ray.__version__
