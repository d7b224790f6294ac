# What apps do with the helper of the page log-python. It prints how long calls took with their
# logging, in milliseconds, and the ids of the calls but the last twenty.
import asyncio
import dataclasses
import datetime
import json
import sys
import time

import spool

ids, waits = [], []


class Pydantic:
    def model_dump(self, mode):
        return {"answer": "from pydantic"}


@dataclasses.dataclass
class Other:
    when: datetime.datetime


def timed(make, **kwargs):
    began = time.perf_counter()
    try:
        answer, request_id = spool.log("openai.chat.completions.create", kwargs, make, tags=["case"])
        ids.append(request_id)
        return answer
    finally:
        waits.append((time.perf_counter() - began) * 1000)


def chunks(**_):
    yield {"choices": [{"index": 0, "delta": {"content": "He"}}]}
    yield {"choices": [{"index": 0, "delta": {"content": "llo"}}]}


def failing(**_):
    raise ValueError("the model is overloaded")


async def chunks_async():
    for chunk in chunks():
        yield chunk


async def asynchronous():
    async def plain(**_):
        return {"async": "answer"}

    async def stream(**_):
        return chunks_async()

    _, request_id = await spool.log_async("f", {"model": "m"}, plain)
    ids.append(request_id)
    answer, request_id = await spool.log_async("f", {"model": "m"}, stream)
    ids.append(request_id)
    assert [c async for c in answer] == list(chunks())


# Values that JSON does not know.
timed(lambda **_: Pydantic(), model="m", when=datetime.datetime(2026, 1, 2), data=b"\x00\xff",
      response_format=Pydantic, other=Other(datetime.datetime(2026, 1, 2)))
# A stream that is read, and one that is left.
assert list(timed(chunks, model="m", stream=True)) == list(chunks())
for _ in timed(chunks, model="m", stream=True):
    break
# A call that fails fails as before.
try:
    timed(failing, model="m")
    sys.exit("the error is gone")
except ValueError:
    pass
asyncio.run(asynchronous())
# An answer that refers to itself cannot be logged, and harms nothing.
circle = {}
circle["me"] = circle
timed(lambda **_: circle, model="m")
# A score needs no answer.
spool.send("/rest/track-score", request_id=ids[0], score=1)
# More than fits.
for _ in range(int(sys.argv[1])):
    spool.send("/rest/track-score", request_id=ids[0], score="1" * int(sys.argv[2]))

ordinary = []
for _ in range(20):
    began = time.perf_counter()
    spool.log("f", {"model": "m"}, lambda **_: {"answer": "yes"})
    ordinary.append((time.perf_counter() - began) * 1000)
print(json.dumps({"ids": ids, "median_ms": sorted(ordinary)[10], "slowest_ms": max(waits + ordinary)}),
      flush=True)
