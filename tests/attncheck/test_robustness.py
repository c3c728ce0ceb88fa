"""Whatever a class does, there is a clear line and no traceback of ours."""

import sys
import threading
import time

import pytest
import torch
from torch import nn

import attention
from attncheck.limits import TimedOutError, Worker


def layer(forward):
    """Return a class whose forward is the given function."""

    class Layer(nn.Module):
        def __init__(self, d_in):
            super().__init__()
            self.linear = nn.Linear(d_in, d_in)

    Layer.forward = forward
    return Layer


def only(report):
    assert [r for r in report.results if r.outcome == "broken"] == []
    assert len(report.findings) == 1, str(report)
    return report.findings[0]


def raises(self, x):
    return x.view(1, 2, 3)


def loops(self, x):
    while True:
        pass


def nothing(self, x):
    self.linear(x)


def exits(self, x):
    sys.exit(5)


def recurses(self, x):
    return recurses(self, x)


def huge(self, x):
    return torch.ones(10**6, 10**6)


def beyond_the_limit(self, x):
    return torch.ones(20 * 2**30 // 4).sum() * x


def first_only(self, x):
    return self.linear(x)[0]


def memory_error(self, x):
    raise MemoryError


@pytest.mark.parametrize(
    ("forward", "mistake", "words"),
    [
        (raises, "forward_raises", "RuntimeError: shape '[1, 2, 3]' is invalid"),
        (raises, "forward_raises", "return x.view(1, 2, 3)"),
        (loops, "hangs", "hadn't returned after 1 s"),
        (nothing, "wrong_shape", "it returned NoneType"),
        (exits, "forward_raises", "SystemExit: 5"),
        (recurses, "forward_raises", "RecursionError"),
        (huge, "forward_raises", "4000000000000 bytes"),
        (memory_error, "forward_raises", "MemoryError"),
        (first_only, "wrong_shape", "the output has (6, 16)"),
    ],
)
def test_a_layer_that_does_not_work_gets_a_clear_line(forward, mistake, words):
    report = attention.check(layer(forward), time_limit=1.0)
    finding = only(report)
    assert finding.mistake == mistake
    assert words in finding.seen
    assert report.exit_status == (3 if mistake == "forward_raises" else 1)
    assert "Traceback" not in str(report)
    assert report.results[0].outcome == "failed"
    assert {r.outcome for r in report.results[1:]} == {"not run"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_memory_is_limited_even_where_there_might_be_enough():
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    finding = only(attention.check(layer(beyond_the_limit)))
    assert finding.mistake == "forward_raises"
    assert "allocate" in finding.seen
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_constructor_that_raises():
    class Layer(nn.Module):
        def __init__(self, d_in):
            super().__init__()
            raise KeyError("weights.pt")

    report = attention.check(Layer)
    finding = only(report)
    assert finding.mistake == "constructor_raises"
    assert "weights.pt" in finding.seen
    assert report.verdict == "not judged"


def test_a_constructor_that_hangs():
    class Layer(nn.Module):
        def __init__(self, d_in):
            loops(self, d_in)

    assert only(attention.check(Layer, time_limit=1.0)).mistake == "hangs"


def test_a_layer_that_hangs_later_stops_the_tests():
    def forward(self, x):
        while len(x) == 1:
            pass
        return self.linear(x)

    report = attention.check(layer(forward), time_limit=1.0)
    assert report.findings[0].mistake == "hangs"
    assert report.results[-1].outcome == "not run"
    assert report.results[-1].why == "a call didn't return"


def test_a_layer_that_hangs_in_another_size_stops_the_tests_too():
    def forward(self, x):
        while x.shape[-1] != 16:
            pass
        return self.project(x)

    class Layer(nn.Module):
        def __init__(self, d_in, d_out):
            super().__init__()
            self.project = nn.Linear(d_in, d_out)

    Layer.forward = forward
    finding = only(attention.check(Layer, time_limit=1.0))
    assert finding.mistake == "hangs"


def test_a_loop_is_stopped_and_leaves_no_thread():
    attention.check(layer(loops), time_limit=1.0)
    deadline = time.monotonic() + 5
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [t for t in threading.enumerate() if "_serve" in t.name]


def test_a_thread_ends_before_its_worker_is_closed():
    # One that still ends while Python shuts down aborts the process at times.
    before = threading.enumerate()
    worker = Worker(5.0)
    assert worker.call(lambda: threading.current_thread()) not in before
    worker.close()
    assert threading.enumerate() == before


def test_the_limit_holds_outside_the_main_thread():
    reports = []
    run = lambda: reports.append(attention.check(layer(loops), time_limit=1.0))  # noqa: E731
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(300)
    assert only(reports[0]).mistake == "hangs"


def test_the_worker_passes_results_and_errors_on():
    worker = Worker(seconds=5)
    assert worker.call(lambda: 3) == 3
    with pytest.raises(KeyError, match="x"):
        worker.call(lambda: {}["x"])
    worker.close()
    slow = Worker(seconds=0.05)
    with pytest.raises(TimedOutError):
        slow.call(lambda: time.sleep(0.5))


def test_a_busy_machine_gets_more_time():
    worker, late = Worker(seconds=0.05), threading.Event()
    shares = iter((0.0, 0.01, 0.02))  # of a processor, a fifth of the clock's

    def computed():
        share = next(shares, None)
        if share is None:  # long after its time, the call returns
            worker.seconds = 60
            late.set()
        return 10.0 if share is None else share

    worker._computed = computed
    assert worker.call(lambda: late.wait(60))
    worker.close()


def test_a_call_that_only_waits_gets_no_more_time():
    worker, ended = Worker(seconds=0.05), threading.Event()
    worker._computed = lambda: 0.0
    with pytest.raises(TimedOutError):
        worker.call(lambda: ended.wait(60))
    ended.set()
    worker._thread.join()


def test_a_slow_layer_is_told_that_tests_are_missing(monkeypatch):
    call = Worker.call

    def slow_call(worker, function):
        worker.spent += 1.0
        return call(worker, function)

    monkeypatch.setattr(Worker, "call", slow_call)
    report = attention.check(attention.CausalAttention)
    assert "time ran out; raise time_limit" in [r.why for r in report.results]
    assert not report.ok


def test_prints_and_warnings_do_not_reach_the_terminal(capsys, recwarn):
    def forward(self, x):
        print(x.shape)
        import warnings

        warnings.warn("beware", stacklevel=1)
        return self.linear(x)

    assert only(attention.check(layer(forward))).mistake == "tokens_not_mixed"
    assert capsys.readouterr().out == ""
    assert len(recwarn) == 0


class OtherNames(nn.Module):
    def __init__(self, width, kinds):
        super().__init__()


class Config(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.sum = config.kinds + config["others"] + config.d_model


class NeedsMask(nn.Module):
    def __init__(self, d_in):
        super().__init__()

    def forward(self, x, mask):
        if mask is not Ellipsis:
            raise TypeError("a mask of another kind")
        return x


@pytest.mark.parametrize(
    ("given", "arguments", "words"),
    [
        (None, {}, "got None"),
        ("path.py", {}, "got 'path.py' (str)"),
        (int, {}, "not a torch.nn.Module"),
        (OtherNames, {}, "OtherNames takes width, kinds; it needs kinds"),
        (OtherNames, {"width": 3}, "it needs kinds"),
        (Config, {}, "Config(config) reads kinds, others of its config"),
        (attention.CausalAttention, {"d_inn": 3}, "it was given d_inn"),
        (attention.CausalAttention, {"layout": "bdt"}, 'must be "btd" or "tbd"'),
        (attention.CausalAttention, {"reference": 3}, "reference must be"),
        (attention.CausalAttention, {"weights": lambda m: {}}, "Add key, query, value"),
        (nn.MultiheadAttention(4, 2).to("meta"), {}, "have no values"),
    ],
)
def test_unusable_input_is_explained(given, arguments, words):
    report = attention.check(given, **arguments)
    assert not report.usable
    assert report.exit_status == 2
    assert words in report.problem


def test_the_time_limit_must_be_a_time():
    with pytest.raises(ValueError, match="number of seconds"):
        attention.check(attention.CausalAttention, time_limit=0)


def test_what_refuses_every_call_is_not_judged_and_says_how_to_call_it():
    report = attention.check(NeedsMask)
    assert (report.verdict, report.exit_status) == ("not judged", 3)
    assert only(report).mistake == "forward_raises"
    said = " ".join(str(report).split())
    assert "call=lambda module, x: module(x, mask=…)" in said
    report = attention.check(NeedsMask, call=lambda module, x: module(x, ...))
    assert only(report).mistake == "tokens_not_mixed"


def test_reference_is_what_counts():
    def wrong(module, x):
        return module(x) * 1.01

    good = attention.CausalAttention
    assert attention.check(good, reference=good).ok
    assert attention.check(good, reference=good(16, 16, 8, 0.0)).ok
    report = attention.check(good, reference=wrong)
    assert only(report).mistake == "differs_from_reference"
    report = attention.check(good, reference=attention.MultiHeadAttention)
    assert "different names. Missing" in report.problem


def test_reference_false_leaves_the_comparison_out():
    class Bare(attention.SelfAttention_v2):
        def forward(self, x):
            return torch.softmax(self.W_query(x) @ self.W_key(x).mT, -1) @ self.W_value(
                x
            )

    found = attention.check(Bare, causal=False).findings
    assert [f.mistake for f in found] == ["scale_missing"]
    report = attention.check(Bare, causal=False, reference=False)
    assert (report.findings, report.exit_status) == ([], 3)


def test_nothing_of_the_readers_changes():
    import random

    module = attention.MultiHeadAttention(16, 16, 8, 0.3, 4).train()
    module.W_key.eval()
    loss = module(torch.randn(2, 3, 16)).sum()
    loss.backward()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in module.parameters()]
    state, python_state = torch.get_rng_state(), random.getstate()
    threads = torch.get_num_threads()

    assert attention.check(module).ok

    assert torch.equal(torch.get_rng_state(), state)
    assert random.getstate() == python_state
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()
    assert module.training
    assert not module.W_key.training
    assert module.dropout.p == 0.3
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        assert torch.equal(parameter.grad, gradient)


def test_it_runs_where_gradients_are_off():
    for off in (torch.no_grad(), torch.inference_mode()):
        with off:
            report = attention.check(attention.CausalAttention)
        assert report.ok, str(report)


def test_a_gpu_that_cannot_be_used_breaks_nothing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    report = attention.check(attention.CausalAttention)
    assert report.ok, str(report)
    outcome = {r.test: r for r in report.results}[".to(device)"]
    if outcome.outcome != "passed":  # a machine with a GPU may pass
        assert "be moved to cuda" in outcome.why


def test_what_others_do_with_the_processor_is_not_counted():
    worker = Worker(60.0)
    try:
        started = time.monotonic()
        worker.call(lambda: threading.Event().wait(0.3))  # it waits, and does nothing
        clock = time.monotonic() - started
        assert worker.spent <= clock / 2
        before = worker.spent
        worker.call(lambda: sum(range(3_000_000)))
        assert worker.spent > before
    finally:
        worker.close()
