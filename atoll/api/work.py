"""Work of the control API without a useful time limit: job processes do it, for as long as the client waits.

    DECODE = Job("atoll.observe.maps:decoded")

    with await offloaded(request, DECODE, data, {"path": path}) as result:
        answer = await result.read()

Work of a few milliseconds is done in place: handing it to a job process takes longer.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request

from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused
from atoll.offload.jobs import Job, JobError, Result, TooManyJobs, TooMuchWork
from atoll.offload.pool import Offload
from atoll.offload.spool import Spool, SpoolFull, SpoolRoom

CALLER: Final = "atoll.caller"  # where the boundary stores the caller, in the ASGI scope of a request
WORK: Final = "atoll.work"


class Work(Struct, frozen=True):
    """What requests may use besides the event loop."""

    offload: Offload
    room: SpoolRoom


async def offloaded(request: Request, job: Job, data: bytes | Spool, args: dict[str, object] | None = None) -> Result:
    """Run a job for a request whose body is read. It ends when the client disconnects; the caller closes the result."""
    work, caller = request.scope[WORK], request.scope[CALLER]
    assert isinstance(work, Work) and isinstance(caller, Caller)
    running = asyncio.ensure_future(work.offload.run(job, data, args, tenant=caller.tenant))
    leaving = asyncio.ensure_future(_departure(request))
    try:
        await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        raise ClientDisconnect
    finally:
        leaving.cancel()
        if not running.done():
            running.cancel()
        await asyncio.wait((running, leaving))


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def work_refusal(error: JobError | SpoolFull) -> Refused:
    """Turn a failed job, or a body that found no room, into an error of the API."""
    if isinstance(error, TooManyJobs | SpoolFull):
        if error.of_tenant:
            return Refused(ApiCode.BUSY, str(error), "wait until they are done, then try again", retry_after=1)
        return Refused(ApiCode.UNAVAILABLE, str(error), "nothing was changed; try again", retry_after=1)
    if isinstance(error, TooMuchWork):
        return Refused(ApiCode.WORK_LIMIT, str(error), "nothing was changed; send less at once")
    return Refused(ApiCode.UNAVAILABLE, str(error), "nothing was changed; try again", retry_after=1)
