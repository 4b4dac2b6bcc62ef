#!/bin/sh
# Makes everything a run needs, once: .venv, RoboTwin's interpreter, the stand-in assets, a Vulkan driver.
# Safe to run again: finished steps are skipped, and a finished set-up returns at once.
#
#   EVALKIT_PYTHON       interpreter for .venv (3.11 or newer; default: the first that fits)
#   EVALKIT_TORCH_INDEX  package index with CPU builds of torch, used where there is no GPU
#   EVALKIT_HOME         where RoboTwin's interpreter and the assets go (default: .evalkit)
#   PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS ... : pip's own settings are respected
set -eu
cd "$(dirname "$0")/.."

venv=.venv
home=${EVALKIT_HOME:-.evalkit}
stamp=$venv/.setup-done
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

has_gpu() { command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

# Everything set-up depends on, in one number: a change of any of it runs set-up again.
fingerprint() {
    {
        echo "$home"
        has_gpu && echo gpu
        cat pyproject.toml requirements/evalkit.lock evalkit/sim/robotwin/requirements.lock \
            evalkit/sim/robotwin/install.py scripts/setup.sh scripts/vulkan.sh
        find evalkit/standin -name '*.py' -type f | LC_ALL=C sort | xargs cat
    } | sha256sum | cut -d ' ' -f 1
}

is_done() {
    [ -f "$stamp" ] && [ -x "$venv/bin/evalkit" ] && [ -f "$home/robotwin/install.json" ] && [ -d "$home/standin" ] &&
        [ "$(cat "$stamp")" = "$(fingerprint)" ]
}

find_python() {
    for candidate in ${EVALKIT_PYTHON:-python3.11 python3.12 python3.13 python3}; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer with the venv module (${EVALKIT_PYTHON:-python3.11, python3.12, python3.13, python3}):" \
        "install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name it with EVALKIT_PYTHON"
}

# pip's progress and its notes about the index go to a log; its errors are shown.
pip_install() {
    log=$venv/pip.log
    "$venv/bin/python" -m pip install -q "$@" >"$log" 2>&1 || {
        grep '^ERROR' "$log" >&2 || tail -n 5 "$log" >&2
        fail "pip install $* failed (log: $log; another package index: set PIP_INDEX_URL)"
    }
}

# CPU builds of torch carry "+cpu" in their version; where no index offers one, the default build works on a CPU too.
install_torch() {
    version=$(sed -n 's/^torch==\([^ ;]*\).*/\1/p' requirements/evalkit.lock)
    if has_gpu; then
        pip_install "torch==$version"
        return
    fi
    "$venv/bin/python" -m pip install -q ${EVALKIT_TORCH_INDEX:+--extra-index-url "$EVALKIT_TORCH_INDEX"} \
        "torch==$version+cpu" >"$venv/torch.log" 2>&1 && return
    say "no CPU build of torch $version in the package index (EVALKIT_TORCH_INDEX names another): taking the default build"
    pip_install "torch==$version"
}

install_evalkit() {
    wanted=$(cat pyproject.toml requirements/evalkit.lock | sha256sum)
    if [ -x "$venv/bin/evalkit" ] && [ "$(cat "$venv/.packages" 2>/dev/null)" = "$wanted" ]; then return; fi
    python=$(find_python)
    say "$($python --version 2>&1) in $venv"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    say "installing evalkit's packages (the largest is torch)"
    install_torch
    pip_install -r requirements/evalkit.lock
    pip_install --no-deps --no-build-isolation -e .
    echo "$wanted" >"$venv/.packages"
}

is_done && exit 0
rm -f "$stamp"
install_evalkit
PYTHON=$venv/bin/python scripts/vulkan.sh
say "RoboTwin's interpreter"
"$venv/bin/evalkit" robotwin install >/dev/null
say "stand-in assets"
"$venv/bin/evalkit" standin build >/dev/null
fingerprint >"$stamp"
say "done"
