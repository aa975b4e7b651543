import type { HttpEvent, Module } from "#core/types.ts";

/** The hello app in a worker. */
export const isolated = true;
export const depends = ["http"];

export default function apart(module: Module): void {
  module.provides("http", {
    route: {
      "GET /hello": (event: HttpEvent) => {
        event.response.headers.content_type = "text/plain; charset=utf-8";
        return "hello";
      },
    },
  });
}
