"""Messages of commits are checked by a script, which pre-commit and the workflow run."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / ".ci" / "check_message.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason=".ci comes with a checkout")

WHY = "\n\nThe reason, in a line.\n"


@pytest.mark.parametrize(
    "message",
    [
        "Add a horn" + WHY,
        "Feed the goat" + WHY,
        "# a comment\nSay why" + WHY + "# what git adds",
        "Merge branch 'a': anything, however long it may be, because git has written the subject",
        "Count to 72 " + "a" * 60 + WHY,
    ],
)
def test_a_good_message_passes(message):
    assert runpy.run_path(str(SCRIPT))["faults"](message) == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", "empty"),
        ("Count to 73 " + "a" * 61 + WHY, "73 characters, at most 72"),
        ("Added a horn" + WHY, "'Added', not with an imperative"),
        ("Adding a horn" + WHY, "'Adding', not with an imperative"),
        ("add a horn" + WHY, "'add', not with a verb"),
        ("feat: add a horn" + WHY, "'feat:', not with a verb"),
        ("Add a horn." + WHY, "full stop"),
        ("Add a horn\nfor ships\n", "no blank line"),
        ("Add a horn\n\n# only a comment\n", "no body"),
    ],
)
def test_a_fault_is_named(message, words):
    (fault,) = runpy.run_path(str(SCRIPT))["faults"](message)
    assert words in fault


def test_a_commit_with_a_bad_message_is_refused_by_git(tmp_path):
    """The script as git runs it, and over a range of commits."""
    own = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": os.devnull}
    own |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}

    def run(*words):
        env = os.environ | own
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=env)

    assert run("git", "init", "-q", ".").returncode == 0
    hook = tmp_path / ".git/hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} "$1"\n')
    hook.chmod(0o755)
    commit = ("git", "commit", "-q", "--allow-empty", "-m")
    assert run(*commit, "Begin" + WHY).returncode == 0
    refused = run(*commit, "Added it")
    assert refused.returncode != 0 and "imperative" in refused.stdout + refused.stderr
    assert run(*commit, "Wrong", "--no-verify").returncode == 0
    checked = run(sys.executable, str(SCRIPT), "HEAD~1..HEAD")
    assert checked.returncode == 1 and "no body" in checked.stdout


def test_pre_commit_runs_it_on_messages():
    given = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {hook["id"]: hook for hook in given["repos"][0]["hooks"]}
    assert hooks["message"]["stages"] == ["commit-msg"]
    assert (ROOT / hooks["message"]["entry"]).samefile(SCRIPT) and os.access(SCRIPT, os.X_OK)
    assert "commit-msg" in given["default_install_hook_types"]
