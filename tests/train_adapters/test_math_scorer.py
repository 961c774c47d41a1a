"""The scorer of mathematical answers: what is right, which rule says so, and that nothing a model writes breaks it."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from math_answers import DIFFERENT, PAIRS, SAME

from operators.errors import UserError
from train_adapters.math_tasks import verifier as verifier_module
from train_adapters.math_tasks.exact import exact_value, formula
from train_adapters.math_tasks.notation import last_boxed, tidied
from train_adapters.math_tasks.scorer import RULES, Scorer, Verdict, prediction_of
from train_adapters.math_tasks.verifier import Caps, Opinion, Verifier, VerifierFailed


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    """A scorer that is quick to give up."""
    scorer = Scorer(Verifier(processes=2, caps=Caps(cpu_s=0.5)))
    yield scorer
    scorer.close()


@pytest.fixture(scope="module")
def verdicts(scorer: Scorer) -> dict[tuple[str, str], Verdict]:
    """Of all labelled pairs, judged side by side."""

    async def judged() -> list[Verdict]:
        return await asyncio.gather(*(scorer.verdict(prediction_of(one), other) for one, other, _ in PAIRS))

    return {pair[:2]: verdict for pair, verdict in zip(PAIRS, asyncio.run(judged()), strict=True)}


def judge(scorer: Scorer, prediction: str, expected: str) -> Verdict:
    return asyncio.run(scorer.verdict(prediction_of(prediction), expected))


class Failing(Verifier):
    """A verifier whose processes always fail, or that says always the same."""

    def __init__(self, opinion: Opinion | None = None) -> None:
        self.opinion = opinion

    async def ask(self, prediction: str, expected: str) -> Opinion:
        if self.opinion is None:
            raise VerifierFailed("gone")
        return self.opinion

    def close(self) -> None:
        """Nothing runs."""


def test_the_table_is_long_enough_and_says_nothing_twice() -> None:
    """Else what the labels cover is less than it seems."""
    assert len(SAME) >= 80
    assert len(DIFFERENT) >= 80
    assert len({pair[:2] for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(("prediction", "expected", "equal"), PAIRS)
def test_a_pair_is_judged_as_by_hand(
    verdicts: dict[tuple[str, str], Verdict], prediction: str, expected: str, equal: bool
) -> None:
    """Else the agent is taught to write what is not the answer, or punished for the right one."""
    verdict = verdicts[prediction, expected]
    assert verdict.correct is equal, verdict
    assert verdict.rule in RULES


@pytest.mark.parametrize(
    ("prediction", "expected", "correct", "rule"),
    [
        (r"\frac12", "0.5", True, "math-verify"),
        ("1", "-1", False, "math-verify"),
        ("Tuesday", "tuesday", True, "text"),
        ("3 or more", "3", False, "text"),
        ("", "3", False, "none given"),
        ("10^{10^{10}}", "5", False, "too costly"),
    ],
)
def test_the_verdict_says_which_rule_decided(
    scorer: Scorer, prediction: str, expected: str, correct: bool, rule: str
) -> None:
    """Else nobody can tell whether math-verify ever decided anything: in published runs it never did."""
    verdict = judge(scorer, prediction, expected)
    assert (verdict.correct, verdict.rule) == (correct, rule)
    assert verdict.expected == tidied(expected)


@pytest.mark.parametrize("opinion", [None, Opinion.TOO_COSTLY, Opinion.UNREAD])
def test_plain_numbers_need_no_math_verify(opinion: Opinion | None) -> None:
    """Else answers are lost with it that fractions alone can judge."""
    scorer = Scorer(Failing(opinion))
    assert judge(scorer, "0.50", "1/2") == Verdict(True, "exact", "0.50", "1/2")
    assert judge(scorer, "12", "1/2") == Verdict(False, "exact", "12", "1/2")
    assert judge(scorer, "Tuesday", "tuesday").rule == "text"


def test_a_failure_of_the_scorer_is_no_wrong_answer() -> None:
    """Else the agent is punished for a process that somebody killed."""
    with pytest.raises(VerifierFailed):
        judge(Scorer(Failing()), r"\sqrt{8}", r"2\sqrt{2}")


def test_what_the_answer_costs_is_the_answers_fault() -> None:
    """Else an answer that nobody can evaluate is left out of the rewards, which beats being wrong."""
    assert judge(Scorer(Failing(Opinion.TOO_COSTLY)), "9^{9^9}", "3").rule == "too costly"


@pytest.mark.parametrize(
    "prediction",
    [
        "9^{9^{9^9}}",
        "10^{10}!",
        r"\sum_{i=1}^{10^{12}} i^i",
        r"\binom{10^9}{5\cdot10^8}",
        r"\frac{" * 160 + "1" + "}{2}" * 160,
        "(" * 400 + "1" + ")" * 400,
        r"\boxed{" * 100,
        "9" * 100_000,
        "x" * 100_000,
        "$" * 1000,
        "\\" * 501,
        "1e1000000000",
        "1e-1000000000",
        "\ud800\x00\n\t",
        "٣" * 900,
        "7" + " 777" * 200,
        "**" * 400,
    ],
)
def test_nothing_a_model_writes_hangs_or_breaks_it(scorer: Scorer, prediction: str) -> None:
    """Else one reply stops a training."""
    assert not judge(scorer, prediction, "5").correct


def test_hostile_and_good_answers_are_judged_side_by_side(scorer: Scorer) -> None:
    """Else one direction's nonsense costs another one its reward, or the processes never come back."""

    async def judged() -> list[Verdict]:
        return await asyncio.gather(*(scorer.verdict(one, "1024") for one in ["9^{9^{9^9}}", "2^{10}"] * 3))

    found = asyncio.run(judged())
    assert [one.correct for one in found] == [False, True] * 3
    assert {one.rule for one in found} == {"too costly", "math-verify"}


def test_a_process_that_is_killed_is_replaced() -> None:
    """Else the first out-of-memory kill on a machine makes all later answers unjudgeable."""
    verifier = Verifier(processes=1)
    assert asyncio.run(verifier.ask("2", "2")) is Opinion.EQUAL
    process = verifier._idle.get()
    verifier._idle.put(process)
    assert process._process is not None
    os.kill(process._process.pid, signal.SIGKILL)
    assert asyncio.run(verifier.ask("2^{3}", "8")) is Opinion.EQUAL
    verifier.close()
    verifier.close()
    assert process._process is None


def test_a_process_that_hangs_is_a_failure_and_not_an_opinion() -> None:
    """Else a machine that is too busy to answer makes right answers wrong."""
    verifier = Verifier(processes=1, caps=Caps(cpu_s=60, wall_s=0.3))
    with pytest.raises(VerifierFailed, match=r"no answer within 0\.3 s"):
        asyncio.run(verifier.ask("9^{9^{9^9}}", "3"))
    verifier.close()


def test_a_process_is_replaced_now_and_then() -> None:
    """Else what the libraries keep of millions of answers fills its memory."""
    verifier = Verifier(processes=1, caps=Caps(pairs=1))
    assert [asyncio.run(verifier.ask("2", other)) for other in ("2", "3")] == [Opinion.EQUAL, Opinion.DIFFERENT]
    verifier.close()


def test_without_math_verify_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the training stops with an import error of a library nobody has heard of."""
    monkeypatch.setattr(verifier_module, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'eoh-esopt\[agents\]'"):
        Scorer()
    assert importlib.util.find_spec("math_verify") is not None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{3}", "3"),
        (r"first \boxed{1}, then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {\{1,2\}}", r"\{1,2\}"),
        (r"\fbox{3}", "3"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{12", "12"),
        ("\\boxed{12\nmore", "12"),
        (r"\boxed{}", ""),
        ("42", "42"),
        ("**42**", "42"),
        ("`42`", "42"),
        (r'\boxed{"42"}', "42"),
        ("", ""),
        (None, ""),
    ],
)
def test_the_answer_is_what_the_last_box_holds(text: str | None, answer: str) -> None:
    """Else a sum written before the answer is judged, or braces are cut in half."""
    assert prediction_of(text) == answer


def test_a_text_without_a_box_has_none() -> None:
    """Else a mention of the word is taken for an answer."""
    assert last_boxed("boxed 3") is None


whole = st.integers(-(10**30), 10**30)


@given(whole, whole.filter(bool))
@example(1, -2)
def test_a_fraction_is_read_back_from_its_formula(above: int, below: int) -> None:
    """Else math-verify is given another number than the model wrote."""
    value = Fraction(above, below)
    assert exact_value(formula(value)) == value
    assert exact_value(f"{above}/{below}") == value


@given(whole, st.integers(0, 12))
def test_a_decimal_is_read_exactly(digits: int, places: int) -> None:
    """Else answers are rounded, and different ones are equal."""
    value = Fraction(digits, 10**places)
    whole_part, decimals = divmod(abs(digits), 10**places)
    text = f"{'-' * (digits < 0)}{whole_part}.{decimals:0{places}d}" if places else str(digits)
    assert exact_value(text) == value
    assert exact_value(f"{digits}e-{places}") == value


@given(whole)
def test_separated_thousands_are_one_number(number: int) -> None:
    """Else 1,234 is two numbers or a wrong one."""
    assert exact_value(f"{number:,}") == number
    assert exact_value(f"{number:,}".replace(",", " ")) == number


@given(st.text(max_size=60))
def test_reading_never_raises(text: str) -> None:
    """Else a reply in an unknown script stops the training."""
    found = exact_value(tidied(text))
    assert found is None or isinstance(found, Fraction)
    assert isinstance(prediction_of(text), str)


@given(st.text(alphabet="0123456789-+./,eE {}\\frac()*^x%", max_size=40))
def test_tidying_twice_changes_nothing_more(text: str) -> None:
    """Else an answer in the data and the same answer in a reply are spelt in two ways."""
    assert tidied(tidied(text)) == tidied(text)
