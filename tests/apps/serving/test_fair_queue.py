"""The fair queue gives back everything once, in order for each client, and one request of each in turn."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.serving.reading_queue import FairQueue


@dataclass(frozen=True)
class Waiting:
    client: str
    number: int
    characters: int = 10


items = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), max_size=30)


@given(items, st.integers(1, 100))
def test_everything_comes_out_once_and_in_order_for_each_client(
    given_items: list[tuple[str, int]], characters: int
) -> None:
    queue: FairQueue = FairQueue()
    all_items = [Waiting(client, number, size) for number, (client, size) in enumerate(given_items)]
    for item in all_items:
        queue.put(item)  # type: ignore[arg-type]
    assert (len(queue), queue.characters) == (len(all_items), sum(item.characters for item in all_items))
    out: list[Waiting] = []
    while len(queue):
        taken = queue.take(characters)
        assert taken
        assert sum(item.characters for item in taken[:-1]) < characters
        out += taken
    assert queue.characters == 0
    assert queue.take(characters) == []
    assert sorted(out, key=lambda item: item.number) == all_items
    for client in "abc":
        own = [item.number for item in out if item.client == client]
        assert own == sorted(own)


def test_a_client_with_many_requests_does_not_hold_up_another() -> None:
    queue: FairQueue = FairQueue()
    for number in range(100):
        queue.put(Waiting("greedy", number))
    queue.put(Waiting("modest", 0))
    assert [item.client for item in queue.take(20)] == ["greedy", "modest"]
