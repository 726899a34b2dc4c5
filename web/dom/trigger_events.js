// Classes of the events that start a call of a service-worker script, besides fetch. They are Cloudflare's.
import { ExtendableEvent } from "./global_scope.js";
import { defineInterface } from "../internal/platform.js";

export class ScheduledEvent extends ExtendableEvent {}

export class TailEvent extends ExtendableEvent {}

/** The older name of TailEvent. */
export class TraceEvent extends ExtendableEvent {}

const CLASSES = { __proto__: null, scheduled: ScheduledEvent, tail: TailEvent, trace: TraceEvent };

for (const Class of Object.values(CLASSES)) defineInterface(Class);

export function classOfEvent(name) {
  return CLASSES[name] ?? ExtendableEvent;
}
