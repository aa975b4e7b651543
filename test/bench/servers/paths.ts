/** The paths of the servers' hello routes: BENCH_ROUTES of them, with up to a hundred per app. */

const ROUTES = 150;
const MAX_PER_APP = 100;

export interface HelloApp {
  readonly name: string;
  /** Paths below the app: `/hello`, `/hello1`... */
  readonly paths: readonly string[];
}

/** Each route has its own app if there are up to 150 of them. */
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
