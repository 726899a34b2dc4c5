// The scheduled event: what a cron trigger starts.
import { defineEvent } from "#web/internal/events.js";
import { callHandler } from "#web/worker/events.js";

/** https://developers.cloudflare.com/workers/runtime-apis/handlers/scheduled/ */
class ScheduledController {
  #cron;
  #scheduledTime;
  #noRetry = false;

  constructor({ cron, scheduledTime }) {
    this.#cron = cron;
    this.#scheduledTime = scheduledTime;
  }

  get cron() {
    return this.#cron;
  }

  get scheduledTime() {
    return this.#scheduledTime;
  }

  get type() {
    return "scheduled";
  }

  noRetry() {
    this.#noRetry = true;
  }

  static outcome(controller) {
    return { noRetry: controller.#noRetry };
  }
}

const scheduledOutcome = ScheduledController.outcome;
delete ScheduledController.outcome;

defineEvent("scheduled", async (target, meta, body, call) => {
  const controller = new ScheduledController(meta);
  await callHandler(target, "scheduled", controller, call);
  return scheduledOutcome(controller);
});
