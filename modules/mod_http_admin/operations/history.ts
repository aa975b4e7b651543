/** Operations for the metrics of the last hour. */
import { AdminError } from "../errors.ts";
import { routeSeries, serverSeries } from "../history/index.ts";
import { defineOperation } from "./operation.ts";

export const historyOperations = [
  defineOperation({
    name: "history",
    method: "GET",
    path: "/history",
    scope: "read",
    help: "Metrics of the last hour, of the server or of one route, with a sample every ten seconds",
    input: {
      series: {
        type: "string",
        describe: `Series, separated by commas: ${serverSeries.join(", ")}; for a route ${routeSeries.join(", ")}; default: all`,
      },
      module: { type: "string", describe: "The module of a route, as `route_figures` names it" },
      route: { type: "string", describe: "The route, as `route_figures` names it" },
    },
    response: "History",
    run({ input: { series, module, route }, history }) {
      if (module === undefined && route === undefined) return history.columns(chosen(series, serverSeries));
      if (module === undefined || route === undefined)
        throw new AdminError("invalid", "To name a route, give both fields: module and route");
      const found = history.columnsOfRoute(module, route, chosen(series, routeSeries));
      if (found !== undefined) return found;
      throw new AdminError("not_found", `The route ${route} of ${module} had no requests in the last hour`);
    },
  }),
  defineOperation({
    name: "route_figures",
    method: "GET",
    path: "/routes/figures",
    scope: "read",
    help: "Rate, errors and latencies of each route with requests in the last hour, the busiest first",
    response: { type: "array", items: { $ref: "#/components/schemas/RouteFigures" } },
    run: ({ history }) => history.routes(),
  }),
];

/** @throws {AdminError} invalid */
function chosen<N extends string>(wanted: string | undefined, known: readonly N[]): readonly N[] {
  if (wanted === undefined) return known;
  return [...new Set(wanted.split(",").map((name) => name.trim()))].map((name) => {
    const found = known.find((one) => one === name);
    if (found !== undefined) return found;
    throw new AdminError("invalid", `There is no series ${JSON.stringify(name)} here: series are ${known.join(", ")}`);
  });
}
