// Calls of an entry point: of another worker through a service binding, or of the worker itself through ctx.exports. Each begins
// a session. Stubs of objects can come here as well: another op that reaches an entry point.
import { makeThrown } from "../worker/thrown.js";
import { isPlain, writeValue } from "../worker/parcel.js";
import { callInside } from "../internal/ops.js";
import { currentChannel } from "./channel.js";
import { movesParameters } from "./flags.js";
import { MAIN } from "./question.js";

const NO_ARGUMENTS = { bytes: new Uint8Array(0), pipes: [] }; // the property is read, not called

/**
 * Calls or reads (`args` is null) a member: `op` with the fields of `address` reaches the entry point. Returns its answer.
 * `way` is that of calls inside the engine, if there can be one. `onThrown(error)` hears of an exception before the caller does.
 */
export function askEntrypoint(op, address, path, args, way = undefined, onThrown = undefined) {
  const session = currentChannel().open();
  const question = session.begin();
  const { bytes, pipes } = args === null ? NO_ARGUMENTS : writeValue(args, session, movesParameters());
  const meta = {
    ...address,
    method: path[0],
    path: path.length > 1 ? path.slice(1) : undefined,
    session: session.number,
    caps: session.hasExports || undefined,
    pipes: pipes.length > 0 ? pipes : undefined,
  };
  // Stubs and streams need Python.
  const isSimple = way !== undefined && path.length === 1 && (args === null || isPlain(bytes)) && !session.hasExports;
  const answer = isSimple ? callInside(op, meta, bytes, way, true, path[0], "") : op(meta, bytes);
  answer.then(
    ({ meta: told, body }) => {
      if (told === undefined) session.answered(MAIN, body, false);
      else if (told.thrown === undefined) session.answered(MAIN, body, told.kept === true);
      else {
        const error = makeThrown(told.thrown);
        onThrown?.(error);
        session.failed(MAIN, error);
      }
    },
    (error) => session.end(error),
  );
  return question;
}
