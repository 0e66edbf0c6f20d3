"""docker-compose.yml and the Dockerfile say what commands, configuration and pages really know."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import flower.options
import pytest
import redis
import uvicorn
import yaml
from celery import Celery
from celery.bin.base import CLIContext
from celery.bin.celery import celery as celery_command

from celegraph.beat_schedule import beat_schedule
from celegraph.config import KEYS, load_config, parse_duration
from celegraph.dev.binaries import find_valkey
from celegraph.dev.server import free_port
from tests.support.process import ROOT
from tests.support.waiting import eventually

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: s for name, s in SERVICES.items() if s["image"] == "celegraph-shop"}
CONFIG = load_config({"database_url": "postgresql://nobody@nowhere/none"})
SHOP = "examples.django_shop"


def words(text: str | list[str]) -> list[str]:
    return shlex.split(text) if isinstance(text, str) else text


def parsed(line: list[str]) -> click.Context:
    """A celery command line as celery itself reads it; click refuses what it does not know."""
    assert line[:3] == ["celery", "-A", SHOP]
    name, *options = line[3:]
    above = click.Context(celery_command, obj=CLIContext(app=Celery("shop"), no_color=True, workdir="."))
    command = celery_command.get_command(above, name)
    assert command is not None
    return command.make_context(name, options, parent=above)


def celery_lines() -> Iterator[tuple[str, list[str]]]:
    for name, service in OURS.items():
        if words(service["command"])[0] == "celery":
            yield name, words(service["command"])


@pytest.mark.parametrize(("name", "line"), list(celery_lines()))
def test_celery_knows_every_option(name: str, line: list[str]) -> None:
    context = parsed(line)

    if line[3] == "flower":
        # Flower hands its options on to tornado, and ignores what it does not know.
        known = {option.replace("_", "-") for option in flower.options.options.as_dict()}
        given = {word.removeprefix("--").partition("=")[0] for word in context.params["tornado_argv"]}
        assert {"address", "port", "conf"} <= given <= known
    else:
        with pytest.raises(click.ClickException):
            parsed([*line, "--no-such-option"])


def test_web_and_migrate_are_commands_of_uvicorn_and_django() -> None:
    program, *options = words(SERVICES["web"]["command"])
    assert program == "uvicorn"
    assert uvicorn.main.make_context("uvicorn", options).params["app"] == f"{SHOP}.asgi:application"

    project = {"PROJECT_DATABASE_URL": "postgresql://x@x/x", "PROJECT_BROKER_URL": "memory://"}
    env = {**os.environ, **project, "DJANGO_SETTINGS_MODULE": "tests.django.project.settings"}
    python, *line = words(SERVICES["migrate"]["command"])
    assert (python, *line[:3]) == ("python", "-m", "django", "migrate")
    for more, code in (["--help"], 0), (["--no-such-option"], 2):
        done = subprocess.run(
            [sys.executable, *line, *more], env=env, cwd=ROOT, capture_output=True, check=False
        )
        assert done.returncode == code, done.stderr


def test_workers_take_every_queue_between_them_and_the_clock_has_its_own() -> None:
    taken = {name: parsed(line).params["queues"] for name, line in celery_lines() if line[3] == "worker"}

    assert taken == {"worker": ["celery", CONFIG.queue], "control": [CONFIG.control_queue]}
    sent = {entry["options"]["queue"] for entry in beat_schedule(CONFIG).values()}
    assert sent <= {queue for queues in taken.values() for queue in queues}


def test_the_pages_start_the_same_workers() -> None:
    for page in ("operations.md", "deploy.md"):
        text = (ROOT / "docs" / page).read_text("utf-8")
        for name, line in celery_lines():
            if line[3] == "worker":
                assert f"-Q {','.join(parsed(line).params['queues'])}" in text, (page, name)
    told = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    assert all(f"`{name}`" in told for name in SERVICES)


def test_there_is_no_password_in_the_file_and_none_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    variables = dict(re.findall(r"\$\{(\w+)(:[?-][^}]*)?\}", text))
    example = dict(
        line.split("=", 1) for line in (ROOT / ".env.example").read_text().splitlines() if "=" in line[:30]
    )

    secret = {name for name in variables if re.search("PASSWORD|SECRET|AUTH", name)}
    assert secret == {"POSTGRES_PASSWORD", "VALKEY_PASSWORD", "SHOP_SECRET", "FLOWER_BASIC_AUTH"}
    assert all(variables[name].startswith(":?") for name in secret)
    assert all(example[name] == "" for name in secret)
    assert variables.keys() <= example.keys()
    for url in re.findall(r"\w+://\S+", text):
        assert "@" not in url or "${" in url, url
    assert ".env" in (ROOT / ".gitignore").read_text().split()


def test_every_service_is_watched_comes_back_and_is_given_time_to_stop() -> None:
    for name, service in SERVICES.items():
        if name == "migrate":
            assert service["restart"] == "no"
            continue
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert parse_duration(service["stop_grace_period"]).total_seconds() >= 15, name


def test_a_draining_worker_has_longer_than_its_longest_call() -> None:
    grace = parse_duration(SERVICES["worker"]["stop_grace_period"])

    assert grace > CONFIG.effect_timeout + CONFIG.call_window


def test_everything_waits_for_what_it_needs() -> None:
    for name, service in OURS.items():
        needed = {n: c["condition"] for n, c in service["depends_on"].items()}
        assert needed["postgres"] == "service_healthy"
        if name != "migrate":
            assert needed["valkey"] == "service_healthy"
            assert needed["migrate"] == "service_completed_successfully"
    mounted = {v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", ())}
    assert mounted == COMPOSE["volumes"].keys()


def test_only_the_pages_are_published_and_only_on_this_machine() -> None:
    published = {name: port for name, s in SERVICES.items() for port in s.get("ports", ())}

    assert published == {"web": "127.0.0.1:8000:8000", "flower": "127.0.0.1:5555:5555"}
    for name, port in published.items():
        inside = port.rpartition(":")[2]
        assert re.search(rf"--port[= ]{inside}\b", SERVICES[name]["command"])
        assert inside in " ".join(SERVICES[name]["healthcheck"]["test"])


def test_every_option_of_celegraphs_in_the_environment_exists() -> None:
    given = {key for s in OURS.values() for key in s["environment"] if key.startswith("CELEGRAPH_")}

    assert given <= {f"CELEGRAPH_{key.upper()}" for key in KEYS}


def test_there_are_connections_enough_for_every_slot() -> None:
    slots, mains = 0, 1  # the web process
    for _, line in celery_lines():
        mains += 1
        slots += parsed(line).params.get("concurrency") or 0 if line[3] == "worker" else 0
    limit = int(re.search(r"max_connections=(\d+)", SERVICES["postgres"]["command"]).group(1))  # type: ignore[union-attr]

    assert 2 * slots + 8 * mains < limit / 2  # the shop's own, and another set while a deploy overlaps


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"migrate"}))
def test_the_health_checks_commands_are_sound(name: str) -> None:
    kind, *test = SERVICES[name]["healthcheck"]["test"]
    if kind == "CMD-SHELL":
        script = test[0].replace("$$", "$")
        assert subprocess.run(["sh", "-n", "-c", script], check=False).returncode == 0
        if script.startswith("celery"):
            assert parsed(shlex.split(script)).params["timeout"] == 10.0
    elif test[:2] == ["python", "-c"]:
        compile(test[2], name, "exec")
    else:
        assert test[0] == "pg_isready"


def test_the_web_check_sees_a_listener_and_its_absence() -> None:
    port = free_port()
    test = [word.replace("8000", str(port)) for word in SERVICES["web"]["healthcheck"]["test"][1:]]
    assert test[0] == "python"  # in the image; not every machine has one of that name
    test[0] = sys.executable
    down = subprocess.run(test, check=False, capture_output=True)
    with subprocess.Popen([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]) as server:
        try:
            eventually(lambda: subprocess.run(test, check=False, capture_output=True).returncode == 0)
        finally:
            server.kill()

    assert down.returncode == 1


def test_beats_check_sees_a_fresh_file_and_misses_an_old_one(tmp_path: Path) -> None:
    script = SERVICES["beat"]["healthcheck"]["test"][1].replace("$$", "$").replace("/tmp", str(tmp_path))
    schedule = parsed(words(SERVICES["beat"]["command"])).params["schedule"]

    def healthy() -> bool:
        return subprocess.run(["sh", "-c", script], check=False).returncode == 0

    assert Path(schedule).parent == Path("/tmp")
    assert not healthy()
    (tmp_path / Path(schedule).name).touch()
    assert healthy()
    subprocess.run(["touch", "-d", "1 hour ago", tmp_path / Path(schedule).name], check=True)
    assert not healthy()


def test_valkey_starts_with_the_files_own_settings(tmp_path: Path) -> None:
    text: str = COMPOSE["configs"]["valkey"]["content"]
    text = re.sub(r"\$\{VALKEY_PASSWORD[^}]*\}", "only-for-tests", text).replace("/data", str(tmp_path))
    port = free_port()
    conf = tmp_path / "valkey.conf"
    conf.write_text(f"{text}port {port}\nbind 127.0.0.1\n")
    assert SERVICES["valkey"]["configs"][0]["target"] == words(SERVICES["valkey"]["command"])[1]

    with (
        subprocess.Popen([find_valkey().executable, conf], stdout=subprocess.DEVNULL) as server,
        redis.Redis(port=port, password="only-for-tests", decode_responses=True) as client,
    ):
        try:
            eventually(lambda: _answers(client))
            found: Mapping[str, str] = client.config_get("*")
        finally:
            server.kill()

    assert found["appendonly"] == "yes"
    assert found["maxmemory-policy"] == "noeviction"
    assert int(found["maxmemory"]) > 0


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


# -- the image -------------------------------------------------------------------------------------

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").split()


def test_what_the_image_copies_is_there_and_is_not_ignored() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)

    paths = [path.removeprefix("./") for line in copied for path in line.split()]
    assert {"celegraph", "examples", "pyproject.toml"} <= set(paths)
    for path in paths:
        assert (ROOT / path).exists(), path
        assert f"!{path}" in IGNORED, path
    assert IGNORED[0] == "*"  # a .env can only get in by name
    assert not any(".env" in line or ".git" in line for line in IGNORED)


def test_the_image_is_pinned_runs_as_nobody_in_particular_and_keeps_no_secret() -> None:
    tags = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    images = [*tags, SERVICES["postgres"]["image"], SERVICES["valkey"]["image"]]

    assert all(re.search(r":\d+\.\d+", image) for image in images)
    assert int(re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)[-1]) > 999
    assert not re.search(r"^(ARG|ENV) .*(PASSWORD|SECRET|TOKEN|AUTH)", DOCKERFILE, re.MULTILINE)
    for service in OURS.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


def test_flowers_settings_are_in_the_image() -> None:
    (path,) = re.findall(r"--conf=(\S+)", SERVICES["flower"]["command"])

    assert (ROOT / path).is_file()
    assert path.split("/")[0] in DOCKERFILE


@pytest.mark.parametrize("check", ["asgi", "celery"])
def test_the_shop_comes_up_with_the_files_environment_and_no_other(check: str) -> None:
    environment = OURS["web"]["environment"]
    given = {k: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", v) for k, v in environment.items()}
    given |= {k: re.sub(r"\$\{\w+:\?[^}]*\}", "only-for-these-tests", v) for k, v in given.items()}
    code = f"import django; django.setup(); import examples.django_shop.{check}; "
    code += "from examples.django_shop import celery_app as a; "
    code += "from celegraph.tasks.installation import find; print(find(a).config.schema_name)"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **given, "SHOP_SMTP_URL": "smtp://x:25"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "celegraph\n"), done.stderr
