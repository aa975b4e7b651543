import assert from "node:assert/strict";
import { test } from "node:test";
import { childrenOf, escaped, parseXml, textOf } from "#node/storage/shared/s3/xml.ts";

test("responses of S3 are parsed: elements, text, entities, ignored attributes and comments", () => {
  const list = parseXml(`<?xml version="1.0" encoding="UTF-8"?>
    <!-- <no> --><s3:List xmlns:s3='x' a="1>2"><Key>a &amp;&lt;b&#x20ac;&#8364;</Key><Key/><Size a="1" />\r\n</s3:List>\n`);
  assert.equal(list.name, "s3:List");
  assert.deepEqual(
    childrenOf(list, "Key").map(({ text }) => text),
    ["a &<b€€", ""],
  );
  assert.deepEqual([textOf(list, "Size"), textOf(list, "None")], ["", undefined]);
  const odd = `&<>"'\r\n\t ü`;
  assert.equal(parseXml(`<a>${escaped(odd)}</a>`).text, odd);
});

test("incomplete XML is refused, wherever it is truncated", () => {
  const whole = '<?xml version="1.0"?><A b="c"><D>e&amp;f</D><G/></A>';
  for (let length = 0; length < whole.length; length += 1)
    assert.throws(() => parseXml(whole.slice(0, length)), SyntaxError);
  const wrong = [
    "text",
    "<a></b>",
    "</a>",
    "<a/><b/>",
    "<a>&none;</a>",
    "<a>&#x110000;</a>",
    "<a>& </a>",
    "<a b=c/>",
    "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    "<a><![CDATA[x]]></a>",
    `${"<a>".repeat(40)}${"</a>".repeat(40)}`,
  ];
  for (const xml of wrong) assert.throws(() => parseXml(xml), SyntaxError, xml);
});
