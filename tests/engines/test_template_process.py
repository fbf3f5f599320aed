"""A chat template in a process of its own: what no bound of the template's foresaw ends, and nothing else is lost."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from test_hf_folders_hostile import within

from rlvrlab.engines import template_process
from rlvrlab.engines.template_process import TemplateProcess

GREETING = "{% for m in messages %}{{ bos_token }}{{ m.content }}{% endfor %}"
HI = [{"role": "user", "content": "hi é \ud800"}]
COLLIDING = "range(0, 400000 * 2305843009213693951, 2305843009213693951)"
SLOW_STEPS = {
    "links in brackets": "{{ (')' * 300000 ~ 'a)') | urlize }}",
    "searched from the end": "{{ ('a' * 600000).rfind('ab' ~ 'a' * 300000) }}",
    "keys that collide": f"{{{{ dict.fromkeys({COLLIDING}) | length }}}}",
}


def test_it_writes_what_the_template_says_with_everything_json_can_hold() -> None:
    template = TemplateProcess(GREETING)
    assert template.render(HI, bos_token="<s>", more=["a", "b"]) == "<s>hi é \ud800"
    assert template.render([*HI, *HI], bos_token="") == "hi é \ud800" * 2


@pytest.mark.slow
@pytest.mark.parametrize("what", SLOW_STEPS)
def test_one_step_that_takes_the_square_of_a_long_text_ends(what: str) -> None:
    """In the process that asks they went on for a minute and more, without a look at any clock."""
    template = TemplateProcess(SLOW_STEPS[what], seconds=1)
    with within(120), pytest.raises(ValueError, match="more than 1 seconds in one step"):
        template.render(HI)


def test_an_error_of_the_template_is_told_and_the_next_text_is_written() -> None:
    template = TemplateProcess("{% if messages | length > 1 %}{{ raise_exception('one turn only') }}{% endif %}x")
    with pytest.raises(ValueError, match=r"^one turn only$"):
        template.render([*HI, *HI])
    assert template.render(HI) == "x"


def test_a_template_that_is_no_jinja_is_told_in_words() -> None:
    with pytest.raises(ValueError, match="Expected an expression"):
        TemplateProcess("{% for %}").render(HI)


def test_a_process_that_was_killed_costs_one_text() -> None:
    template = TemplateProcess(GREETING)
    assert template.render(HI, bos_token="")
    os.kill(template._process.pid, signal.SIGTERM)
    template._process.wait()
    assert template.render(HI, bos_token="") == "hi é \ud800"


def test_an_interrupted_text_is_not_given_to_who_asks_next(monkeypatch: pytest.MonkeyPatch) -> None:
    template = TemplateProcess("{{ messages[0].content }}")
    read = template_process.json.loads

    def interrupted(line: bytes) -> object:
        monkeypatch.setattr(template_process.json, "loads", read)
        raise KeyboardInterrupt

    monkeypatch.setattr(template_process.json, "loads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        template.render([{"role": "user", "content": "first"}])
    assert template.render([{"role": "user", "content": "second"}]) == "second"


def test_many_threads_get_their_own_texts() -> None:
    template, found = TemplateProcess("{{ messages[0].content }}"), {}

    def ask(number: int) -> None:
        found[number] = [template.render([{"role": "user", "content": f"{number} {i}"}]) for i in range(20)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {number: [f"{number} {i}" for i in range(20)] for number in range(8)}


def test_no_process_is_left_when_nobody_needs_it() -> None:
    template = TemplateProcess(GREETING)
    template.render(HI, bos_token="")
    pid = template._process.pid
    del template
    gc.collect()
    until = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()
