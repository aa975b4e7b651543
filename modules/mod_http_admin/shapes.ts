/** JSON Schemas of what the Admin API answers. */
type Schema = Readonly<Record<string, unknown>>;

const text = { type: "string" };
const number = { type: "number" };
const integer = { type: "integer" };
const time = { type: "string", format: "date-time" };
const list = (items: Schema): Schema => ({ type: "array", items });
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

function object(fields: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const required = Object.keys(fields).filter((name) => !optional.includes(name));
  return { type: "object", properties: fields, required };
}

export const shapes: Readonly<Record<string, Schema>> = {
  Change: object(
    {
      id: text,
      at: time,
      by: text,
      via: text,
      what: text,
      steps: list(object({ what: text, ms: integer })),
      plan: ref("ConfigPlan"),
      result: { enum: ["done", "refused", "failed"] },
      error: ref("ChangeError"),
    },
    ["via", "plan", "error"],
  ),
  ChangeError: object({ code: text, message: text, place: object({ file: text, line: integer, text }, ["text"]) }, [
    "code",
    "place",
  ]),
  Error: object({ error: object({ code: text, message: text }) }),
  ModuleState: object(
    {
      name: text,
      host: text,
      status: { enum: ["loading", "loaded", "failed", "quarantined", "unloading"] },
      file: text,
      note: text,
      note_level: { enum: ["info", "warn", "error"] },
      depends: list(text),
      holds: { type: "object", additionalProperties: integer },
    },
    ["file", "note", "note_level"],
  ),
  Caller: object({ by: text, scopes: list({ enum: ["read", "admin"] }) }),
  CertificateState: object(
    {
      name: text,
      source: { enum: ["file", "self-signed", "acme"] },
      expires: time,
      fingerprint: text,
      order: ref("CertificateOrder"),
    },
    ["expires", "fingerprint", "order"],
  ),
  CertificateOrder: object({ authority: text, next_try: time, failures: integer, error: text }, ["error"]),
  Token: object(
    {
      id: text,
      name: text,
      scopes: list(text),
      created: time,
      by: text,
      expires: time,
      is_expired: { type: "boolean" },
      rate: text,
      burst: integer,
      bytes_in: text,
      bytes_out: text,
      last_used: time,
      requests: integer,
      received: integer,
      sent: integer,
    },
    ["expires", "rate", "burst", "bytes_in", "bytes_out", "last_used"],
  ),
  MadeToken: object({ token: ref("Token"), secret: text }),
  ListeningPort: object({ service: text, scheme: text, address: text, port: integer }, ["scheme"]),
  ServerStatus: object(
    {
      version: text,
      pid: integer,
      started: time,
      phase: { enum: ["new", "starting", "running", "stopping", "stopped"] },
      config: text,
      data_path: text,
      addresses: list(ref("ListeningPort")),
      modules: list(ref("ModuleState")),
      certificates: list(ref("CertificateState")),
      connections: integer,
      requests: list(text),
      warnings: list(text),
    },
    ["config"],
  ),
  Route: object({ method: text, path: text, host: text, app: text, module: text, kind: text }),
  Middleware: object(
    {
      name: text,
      module: text,
      host: text,
      order: number,
      apps: list(text),
      requests: integer,
      answered: integer,
      failed: integer,
      time: number,
      settings: list(object({ title: text, text, host: text }, ["host"])),
      counts: list(object({ title: text, value: number, unit: { const: "bytes" }, last: number }, ["unit", "last"])),
    },
    ["apps"],
  ),
  Explanation: object(
    {
      method: text,
      path: text,
      host: text,
      middleware: list({ type: "object" }),
      candidates: list({ type: "object" }),
      status: integer,
      reason: text,
    },
    ["path", "host"],
  ),
  OptionState: object(
    {
      name: text,
      value: text,
      source: { enum: ["file", "environment", "caller", "default", "unset"] },
      is_waiting: { const: true },
      owner: text,
      type: text,
      describe: text,
      default: text,
      values: list(text),
      min: number,
      max: number,
      unit: text,
      is_secret: { type: "boolean" },
      is_per_host: { type: "boolean" },
      applies: { enum: ["now", "start"] },
      variable: text,
      hosts: list(object({ host: text, value: text, source: text })),
    },
    ["value", "is_waiting", "owner", "type", "describe", "default", "values", "min", "max", "unit"],
  ),
  ConfigFile: object(
    {
      path: text,
      format: { enum: ["yaml", "json", "script"] },
      text,
      etag: text,
      is_editable: { type: "boolean" },
      reason: text,
    },
    ["path", "format", "text", "etag", "reason"],
  ),
  ConfigCheck: object(
    {
      faults: list(object({ message: text, path: text, line: integer, column: integer }, ["path", "line", "column"])),
      plan: ref("ConfigPlan"),
    },
    ["plan"],
  ),
  AuditPage: object({ changes: list(ref("Change")), next: text }, ["next"]),
  History: object({
    interval: number,
    time: list(number),
    series: { type: "object", additionalProperties: list({ type: ["number", "null"] }) },
  }),
  RouteFigures: object({
    module: text,
    route: text,
    rate: number,
    minute: ref("RouteWindow"),
    hour: ref("RouteWindow"),
  }),
  RouteWindow: object({ requests: integer, errors: integer, p50: number, p90: number, p99: number }, [
    "p50",
    "p90",
    "p99",
  ]),
  LogLine: object({ n: integer, level: text, time, module: text, host: text, msg: text }, ["module", "host"]),
  FinishedRequest: object(
    {
      id: text,
      time,
      method: text,
      path: text,
      host: text,
      ip: text,
      app: text,
      module: text,
      route: text,
      status: integer,
      bytes: integer,
      duration: number,
      complete: { type: "boolean" },
    },
    ["app", "module", "route"],
  ),
  Event: {
    description: "By the type of the event",
    oneOf: ["LogLine", "FinishedRequest", "Figures", "Change"].map(ref),
  },
  ConfigPlan: object(
    {
      config: text,
      isEmpty: { type: "boolean" },
      options: list({ type: "object" }),
      hosts: object({ added: list(text), removed: list(text) }),
      modules: list({ type: "object" }),
      ports: list({ type: "object" }),
      certificates: list(text),
      waiting: list(text),
    },
    ["config"],
  ),
  Figures: object({
    time,
    cpu: number,
    event_loop: number,
    rss: integer,
    heap: integer,
    connections: integer,
    active: integer,
    requests: number,
    errors: number,
    received: number,
    sent: number,
    modules: integer,
  }),
};
