"""The reply of a method call: by a callback, without a task, if its value comes in one piece."""

from __future__ import annotations

import asyncio

from atoll.bindings.base import Later, Reply
from atoll.bindings.pipe.ops import PipeBinding
from atoll.bindings.rpc.sessions import RpcSession
from atoll.bindings.scope import CallScope
from atoll.bindings.services import MethodCall
from atoll.errors import CalleeFailed, Failure, NetworkError
from atoll.wire.generated import ErrorCode


class MethodAnswer(Later):
    __slots__ = ("_call", "_names", "_pipes", "_session", "_task")

    def __init__(self, call: MethodCall, pipes: PipeBinding, names: object, session: RpcSession) -> None:
        super().__init__()
        self._call = call
        self._pipes = pipes
        self._session = session
        self._names = names  # names of the pipes for streams in the arguments
        self._task: asyncio.Task[None] | None = None

    def begin(self, scope: CallScope) -> None:
        call = self._call
        if call.answer is not None:  # refused at once; a reply must not come before the op has returned
            self._session.end()
            self._pipes.drop_unread(self._names)
            asyncio.get_running_loop().call_soon(self._on_answer)
            return
        try:
            number = scope.keep(call)  # it ends with the call that made it, if not before
        except BaseException:
            self._session.end()
            raise

        session, pipes, names = self._session, self._pipes, self._names

        def on_end() -> None:
            call.on_end = None
            scope.forget(number)
            session.response_ended()
            if names is not None:
                pipes.drop_unread(names)

        call.on_end = on_end
        call.listen(self._on_answer)

    def _on_answer(self) -> None:
        answer, value = self._call.answer, self._call.value_nowait()
        if value is not None:
            self.settle(Reply({}, value))
        elif answer is None:
            self.settle(NetworkError("the call of the method was given up"))
        elif isinstance(answer, Failure):
            self.settle(self._described(CalleeFailed(answer)))
        else:
            self._task = asyncio.ensure_future(self._wait())

    async def _wait(self) -> None:
        """Wait for a value that comes in pieces."""
        try:
            value = await self._call.value()
            reply: Reply | Exception = Reply({"kept": True} if self._call.is_kept else {}, value)
        except CalleeFailed as failed:
            reply = self._described(failed)
        self.settle(reply)

    def _described(self, failed: CalleeFailed) -> Reply | Exception:
        failure = failed.failure
        if failure.code != ErrorCode.EXCEPTION:
            return failed
        # The exception is thrown again, without its stack.
        return Reply({"thrown": {"name": failure.name, "message": failure.message, **self._call.thrown}})

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        super().cancel()
