/**
 * Runs a part of the contract tests with isolated modules, over HTTP/1.1. To run all of them:
 * `npm run contract -- --isolated`.
 */
process.env.MODHOST_TEST_ISOLATED = "HTTP/1.1";
for (const file of ["request", "failures"]) await import(`../statements/${file}.test.ts`);
