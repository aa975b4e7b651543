/**
 * `modhost/admin`: the components and functions for pages of the dashboard, also for pages of other
 * modules.
 */
export { ApiError, addressOf, ask, base, call, get, linkTo, pageKey, post } from "./api.js";
export { useAction, useApi } from "./data.js";
export { ago, clock, compact, count, counted, duration, fullTime, percent, printable, rate, size } from "./format.js";
export { follow, useConnection, useTopic } from "./live.js";
export { Plot } from "./plot.js";
export { hrefOf, Link, navigate, useAddress, useQuery } from "./router.js";
export { addSection } from "./sections.js";
export { Table } from "./table.js";
export { toast } from "./toasts.js";
export {
  Ago,
  Badge,
  Button,
  Choice,
  Confirm,
  Copy,
  Dialog,
  Empty,
  Field,
  Load,
  Meter,
  Notice,
  Page,
  Problem,
  Search,
  Section,
  TextField,
} from "./ui.js";
