/**
 * The contract holds for isolated modules: part of its tests, over HTTP/1.1. All of them:
 * `npm run contract -- --isolated`.
 */
process.env.MODHOST_TEST_ISOLATED = "HTTP/1.1";
for (const file of ["request", "failures"]) await import(`../statements/${file}.test.ts`);
