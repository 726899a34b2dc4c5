import { addMonths, format, formatDistance, parseISO } from "date-fns";
import { de } from "date-fns/locale";
import dayjs from "dayjs";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";
import { DateTime, Interval } from "luxon";
import moment from "moment";

dayjs.extend(utc);
dayjs.extend(timezone);

export default () => [
  format(addMonths(new Date(2024, 0, 31), 1), "EEEE d MMMM yyyy", { locale: de }),
  formatDistance(parseISO("2024-01-01"), parseISO("2024-03-01")),
  dayjs.utc("2024-02-29T00:00:00Z").tz("Asia/Tokyo").format("YYYY-MM-DD HH:mm Z"),
  dayjs.utc("2024-02-29").add(1, "year").toISOString(),
  DateTime.fromISO("2024-03-31T01:00", { zone: "Europe/Berlin" }).plus({ hours: 2 }).toISO(),
  DateTime.fromISO("2024-03-31", { zone: "utc" }).setLocale("fr").toLocaleString(DateTime.DATE_HUGE),
  Interval.fromISO("2024-01-01/2024-02-01").length("days"),
  moment.utc("2024-02-29").format("dddd, MMMM Do YYYY"),
  moment.duration(90, "minutes").humanize(),
];
