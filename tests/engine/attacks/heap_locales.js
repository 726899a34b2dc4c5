// Formatters of every locale, calendar and time zone: ICU keeps their shared data for the whole process.
// expect: memory or cpu or answer made
// limits: cpu_ms=10000 memory_mb=64
// times: 2
export default {
  fetch() {
    const locales = [];
    for (let a = 97; a < 123; a++) for (let b = 97; b < 123; b++) locales.push(String.fromCharCode(a, b));
    const zones = Intl.supportedValuesOf("timeZone");
    const calendars = Intl.supportedValuesOf("calendar");
    let i = 0;
    for (const locale of locales) {
      for (const calendar of calendars) {
        new Intl.DateTimeFormat(`${locale}-u-ca-${calendar}`, { timeZone: zones[i++ % zones.length], dateStyle: "full", timeStyle: "full" }).format(0);
        new Intl.NumberFormat(locale, { style: "unit", unit: "liter", unitDisplay: "long" }).format(i);
        new Intl.RelativeTimeFormat(locale).format(1, "day");
        "a".localeCompare("b", locale);
      }
    }
    return new Response("made");
  },
};
