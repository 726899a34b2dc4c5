// `ejs`: compiled at the top level, since a worker may not write code later
// `pug`: compiled at the top level
// `handlebars`: compiled at the top level, by a first call there
import ejs from "ejs";
import Handlebars from "handlebars";
import mustache from "mustache";
import pug from "pug";

const greet = Handlebars.compile("hello {{name}} {{#each list}}<{{this}}>{{/each}}");
greet({ name: "", list: [] });
const page = ejs.compile("<% for (const x of list) { %>[<%= x %>]<% } %>");
const view = pug.compile("ul\n  each x in list\n    li= x");

export default () => {
  const data = { name: "A & B", list: [1, 2] };
  return [greet(data), page(data), view(data), mustache.render("{{name}} {{{name}}} {{#list}}({{.}}){{/list}}", data)];
};
