"""Batches on a server begin together and in their order, and a client that is gone holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fake_served import FakeQueue
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.models.vllm import together
from eoh_esopt.models.vllm.arguments import Refusal
from eoh_esopt.models.vllm.together import Place, Together, read_place


def played(places: Sequence[Place], pauses: Sequence[float] = ()) -> FakeQueue:
    """What became of requests that arrive in this order, each some milliseconds after the one before it."""

    async def play() -> FakeQueue:
        queue = FakeQueue()
        gate = Together(queue)

        async def request(place: Place) -> None:
            async with gate.admitted(place), queue.holds(f"cmpl-{place.batch}-{place.index}-x"):
                pass

        tasks = []
        for number, place in enumerate(places):
            tasks.append(asyncio.ensure_future(request(place)))
            await asyncio.sleep(pauses[number] / 1e3 if pauses else 0)
        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        return queue

    return asyncio.run(play())


@given(st.permutations(range(5)), st.lists(st.sampled_from([0, 0, 3]), min_size=5, max_size=5))
def test_requests_begin_together_in_their_order_however_they_arrive(order: list[int], pauses: list[int]) -> None:
    """The same run would write other replies on a machine that is slow."""
    queue = played([Place("b", index, 5) for index in order], pauses)
    assert queue.begun == [[f"cmpl-b-{index}-x" for index in range(5)]]


def test_a_batch_that_stays_incomplete_begins_without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that dies while it sends would stop the server for everybody."""
    monkeypatch.setattr(together, "PATIENCE_S", 0.1)
    assert played([Place("b", 0, 3), Place("b", 1, 3)]).begun == [["cmpl-b-0-x", "cmpl-b-1-x"]]


def test_a_request_that_breaks_off_lets_the_others_begin() -> None:
    """One request that vLLM refuses would cost its batch ten seconds."""

    async def play() -> list[list[str]]:
        queue = FakeQueue()
        gate = Together(queue)

        async def refused() -> None:
            async with gate.admitted(Place("b", 0, 2)):
                raise ValueError

        async def request() -> None:
            async with gate.admitted(Place("b", 1, 2)), queue.holds("b-1"):
                pass

        results = await asyncio.wait_for(asyncio.gather(refused(), request(), return_exceptions=True), 5)
        assert isinstance(results[0], ValueError)
        return queue.begun

    assert asyncio.run(play()) in ([[]], [["b-1"]])


def test_a_request_that_comes_again_is_not_held() -> None:
    """After a broken connection the second attempt would wait for a batch that has long begun."""
    assert len(played([Place("b", 0, 2), Place("b", 1, 2), Place("b", 1, 2)], [0, 50, 0]).begun) == 1


@pytest.mark.parametrize("text", ["", "b", "b/1", "b/2/2", "b/-1/2", "b/x/2", "b/1/2/3", "/0/1", "b;/0/1"])
def test_other_texts_are_no_places(text: str) -> None:
    """A mistake of a client would hold the server up."""
    with pytest.raises(Refusal, match="no place in a batch"):
        read_place(text)
    assert read_place(str(Place("b", 1, 2))) == Place("b", 1, 2)
