// Runs every minute, and at nine in the morning (UTC) from Monday to Friday: 1 is Sunday.
let ticks = 0;

export default {
  async scheduled(controller) {
    ticks += 1;
    console.log(`${controller.cron} at ${new Date(controller.scheduledTime).toISOString()}`);
  },

  fetch() {
    return new Response(`${ticks} ticks so far\n`);
  },
};
