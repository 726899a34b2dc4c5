import { createIntl } from "@formatjs/intl";
import i18next from "i18next";

export default async () => {
  const i18n = i18next.createInstance();
  await i18n.init({ lng: "de", fallbackLng: "en", resources: { en: { translation: { only: "in English" } }, de: { translation: { hello: "Hallo {{name}}", item_one: "{{count}} Ding", item_other: "{{count}} Dinge" } } } });
  const intl = createIntl({ locale: "de", messages: { cart: "{count, plural, =0 {leer} one {# Ding} other {# Dinge}}, {price, number, ::currency/EUR}" } });
  return [i18n.t("hello", { name: "Ada" }), i18n.t("item", { count: 1 }), i18n.t("item", { count: 5 }), i18n.t("only"), intl.formatMessage({ id: "cart" }, { count: 2, price: 1234.5 }), intl.formatDate(0, { timeZone: "UTC", dateStyle: "long" }), intl.formatRelativeTime(-2, "day")];
};
