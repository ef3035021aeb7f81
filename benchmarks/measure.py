"""What the measuring scripts share: pairs of programs on the two hosts of a rig, and a table of ratios.

At most two processes run at a time, the client on core 0 (host A), the server on core 1 (host B). A ratio is the median over
the rounds' ratios, each of two runs of the same round, with the two cores as far apart from beginning to end: virtual machines
have theirs moved for seconds, and then a round trip takes half as long again. A round in which they were moved is repeated.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(os.environ.get("BUILD_DIR", root / "build/release"))
railmux = build / "src/tools/railmux"
raw = build / "benchmarks/raw_socket"
cores = root / "build/release/benchmarks/cores"
rig = [str(root / "scripts/rig"), "--name", os.environ.get("RIG_NAME", "rmbench")]  # of one's own: two series side by side
port = 7000
listener = {"side": "B", "address": "10.77.0.2"}  # A, 10.77.0.1: for rails that stay on a host
os.environ.setdefault("RAILMUX_PROBE", "shared")  # what earlier runs on other rails found should not count
says_speeds = "RAILMUX_RAIL_SPEEDS" not in os.environ  # the caller's word counts, an empty one too: then nothing is said


def on(side, core, command, **how):
    how = {"stderr": subprocess.DEVNULL, **how}
    return subprocess.Popen(["taskset", "-c", str(core), *rig, "exec", side, *map(str, command)],
                            stdout=subprocess.PIPE, text=True, **how)


def distance():
    """Nanoseconds from core 0 to core 1 and back."""
    return float(subprocess.run([cores], stdout=subprocess.PIPE, text=True, check=True).stdout)


class Steady:
    """Repeats what is measured until the cores have been as far apart for the whole of it."""
    most = 10
    patience = 10  # seconds
    seen = []  # distances around the runs of the measurement under way
    within = False  # whether what it measured shows by itself that they were moved in between
    moved = 0  # measurements that were repeated
    never = 0  # ... and counted all the same

    @classmethod
    def measure(cls, what, near=()):
        """`near`: the distances around what the result is to be compared with; they are waited for."""
        for _ in range(cls.most):
            cls.seen[:] = near
            cls.within = False
            if near:
                cls.wait(near)
            result = what()
            if not cls.within and (not cls.seen or max(cls.seen) < 2 * min(cls.seen)):
                return result
            cls.moved += 1
        cls.never += 1
        return result

    @classmethod
    def wait(cls, near):
        until = time.monotonic() + cls.patience
        while time.monotonic() < until:
            now = distance()
            if max(now, *near) < 2 * min(now, *near):
                return
            time.sleep(0.05)

    @classmethod
    def report(cls, one):
        if cls.moved:
            print(f"{cls.moved} times the cores were moved in a {one}, which was repeated; {cls.never} count although they "
                  "were", file=sys.stderr)


def pair(server, client, limit=120, meanwhile=None, report=None):
    """Runs both sides; what the client printed, as JSON. `meanwhile` is called while they run. The client's report
    (RAILMUX_REPORT) is appended to the list `report`."""
    global port
    port = 7000 + (port + 1) % 900
    Steady.seen.append(distance())
    here = on(listener["side"], 1, [s.format(port=port) if isinstance(s, str) else s for s in server])
    how = {} if report is None else {"stderr": subprocess.PIPE, "env": {**os.environ, "RAILMUX_REPORT": "1"}}
    there = on("A", 0, [c.format(port=port) if isinstance(c, str) else c for c in client], **how)
    try:
        if meanwhile is not None:
            meanwhile()
        out, told = there.communicate(timeout=limit)
        here.communicate(timeout=20)
        Steady.seen.append(distance())
    except subprocess.TimeoutExpired:
        there.kill()
        here.kill()
        raise SystemExit(f"no end within {limit} s: {' '.join(map(str, client))}")
    if report is not None:
        report.append(told)
    return json.loads(out)


def set_rails(rails, providers):
    """From now on both sides have these rails (RAILMUX_RAILS), with these of libfabric's providers; "": all, none."""
    set_variable("RAILMUX_RAILS", rails)
    set_variable("RAILMUX_OFI_PROVIDERS", providers)


def set_variable(name, value):
    """Of both sides; "": not set."""
    if value:
        os.environ[name] = value
    else:
        os.environ.pop(name, None)


def raw_run(mode, size, iterations, rails=1):
    """Iterations: one number, or one for each of the rails."""
    places = ",".join(f"10.77.{i}.2:{{port}}" for i in range(rails))
    return pair([raw, "--listen", "{port}", rails], [raw, "--connect", places, mode, size, iterations])


def railmux_run(tool, size, iterations, *more, **how):
    result = pair([railmux, tool, "--listen", "{port}"],
                  [railmux, tool, "--connect", listener["address"] + ":{port}", "--sizes", size, "--iterations", iterations,
                   "--json", *more], **how)
    return result["results"][0]


def rig_up(rates, burst="256kb"):
    subprocess.run([*rig, "up", *rates, "--burst", burst], check=True)


def rig_up_told(rates, burst="256kb"):
    """... and from now on both sides are told the rates of its rails (RAILMUX_RAIL_SPEEDS), of whatever transport: virtual
    interfaces say 10 Gbit/s each whatever shapes them, which would make the weights of weighted policies equal."""
    rig_up(rates, burst)
    if says_speeds:
        speeds = [f"*rail{rail}={rate.removesuffix('bit').upper()}" for rail, rate in enumerate(rates) if rate != "none"]
        set_variable("RAILMUX_RAIL_SPEEDS", ",".join(speeds))


def congestion_control():
    """What the rig gives the connections of its hosts: $RIG_CONGESTION, else cubic."""
    return subprocess.run([*rig, "exec", "A", "cat", "/proc/sys/net/ipv4/tcp_congestion_control"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.strip()


def rig_down():
    subprocess.run([*rig, "down"], check=False)


def arguments(text):
    options = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", default="", help="cases whose name contains this")
    options.add_argument("--json", action="store_true")
    return options


def paired_arguments(text):
    """... of what can be measured of two builds: see builds_of."""
    options = arguments(text)
    options.add_argument("--against", metavar="BUILD_DIR", type=pathlib.Path,
                         help="measure another build of railmux, too, in turns with this one in every round")
    return options


def builds_of(options):
    """What is appended to the names of its cases, and the program."""
    builds = {"": railmux}
    if options.against:
        builds[", the other build"] = options.against / "src/tools/railmux"
    for program in builds.values():
        if not program.exists():
            raise SystemExit(f"{program} is missing: build it, or name another build")
    return builds


def measure_with(program, what):
    """With that one as railmux."""
    global railmux
    own, railmux = railmux, program
    try:
        return Steady.measure(what)
    finally:
        railmux = own


def run_cases(cases, options, builds=None, bring_up=rig_up):
    """Measures the cases (name, rig: (rates, burst), measure, target, whether more is better) and prints one line for each.

    measure() gives (ratio, text of railmux's figure, text of the other one's). `builds`: see builds_of.
    `bring_up`: rig_up, or rig_up_told.
    """
    results = []
    up = None
    builds = builds or {"": railmux}
    try:
        for name, wanted, measure, target, more in cases:
            if options.only not in name:
                continue
            if wanted != up:
                bring_up(*wanted)
                up = wanted
            runs = {build: [] for build in builds}
            for number in range(options.rounds):
                print(f"\r{name}: {number + 1}/{options.rounds}   ", end="", file=sys.stderr, flush=True)
                for build, program in builds.items():
                    runs[build].append(measure_with(program, measure))
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr)
            for build, found in runs.items():
                results.append(show(name + build, sorted(found), target, more, options.json, not results))
    finally:
        rig_down()
    Steady.report("round")
    if options.json:
        print(json.dumps(results, indent=1))
    return results


def show(name, runs, target, more, as_json, first):
    ratio = statistics.median(run[0] for run in runs)
    _, mine, other = min(runs, key=lambda run: abs(run[0] - ratio))  # of an even number none is the median
    met = ratio >= target if more else ratio <= target
    if not as_json:
        if first:
            print(f"{'# case':<48} {'ratio':>8} {'target':>9}  {'':<7} {'railmux':>12} {'other':>12}   spread")
        limit = (">= " if more else "<= ") + format(target, ".2f")
        print(f"{name:<48} {ratio:>8.3f} {limit:>9}  {'met' if met else 'NOT MET':<7} {mine:>12} {other:>12}   "
              f"{runs[0][0]:.2f} - {runs[-1][0]:.2f}", flush=True)
    return {"name": name, "ratio": round(ratio, 3), "target": target, "met": met, "railmux": mine, "other": other,
            "spread": [round(runs[0][0], 3), round(runs[-1][0], 3)]}
