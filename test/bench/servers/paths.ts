/**
 * The paths that servers have hello routes at: as many as BENCH_ROUTES says, a hundred to an app at
 * most.
 */

const ROUTES = 150;
const MAX_PER_APP = 100;

export interface HelloApp {
  readonly name: string;
  /** Below the app: `/hello`, `/hello1`... */
  readonly paths: readonly string[];
}

/** Up to 150 routes each has its own app. */
export function helloApps(routes = Number(process.env.BENCH_ROUTES ?? ROUTES)): HelloApp[] {
  const each = routes > ROUTES ? MAX_PER_APP : 1;
  return Array.from({ length: Math.ceil(routes / each) }, (_, app) => ({
    name: `app${app}`,
    paths: Array.from({ length: Math.min(each, routes - app * each) }, (_, at) =>
      at === 0 ? "/hello" : `/hello${at}`,
    ),
  }));
}

export const helloPaths = (routes?: number): string[] =>
  helloApps(routes).flatMap(({ name, paths }) => paths.map((path) => `/${name}${path}`));
