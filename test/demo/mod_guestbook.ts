import type { Module } from "modhost";
import { formdecode } from "modhost/net/http";

/** A form and an upload: what most authors write after their first "hello" module. */
export default function guestbook(module: Module) {
  module.depends("http");
  const entries: string[] = [];

  module.provides("http", {
    streaming_uploads: true,
    route: {
      "POST /upload": async (event) => {
        let report = "";
        for await (const part of event.request.parts()) {
          let bytes = 0;
          for await (const chunk of part.body) bytes += chunk.length;
          report += `${part.name}: ${part.filename ?? "a field"}, ${bytes} bytes\n`;
        }
        return report;
      },
    },
    name: "uploads",
  });

  module.provides("http", {
    route: {
      "GET /": () => `${entries.join("\n")}\n`,
      "POST /": (event) => {
        const form = formdecode(event.request.body);
        if (typeof form === "string" || form.entry === undefined) return 400;
        entries.push(`${form.name ?? "Somebody"}: ${form.entry}`);
        event.response.headers.location = "/guestbook/";
        return 303;
      },
    },
  });
}
