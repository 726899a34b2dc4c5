import * as cheerio from "cheerio";
import { marked } from "marked";
import sanitize from "sanitize-html";

export default () => {
  const $ = cheerio.load('<ul id="list"><li class="a">one</li><li>two</li></ul>');
  $("li.a").text("changed").addClass("b");
  return [
    $("#list").html(),
    $("li").map((_, each) => $(each).text()).get(),
    marked.parse("# Title\n\n- *one*\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"),
    sanitize('<p onclick="x()">ok <script>alert(1)</script><a href="javascript:x">bad</a></p>'),
  ];
};
