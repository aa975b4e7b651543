/**
 * The health that a module reports to load balancers: the item of `module.provides("health", ...)`.
 */
export interface HealthItem {
  /**
   * Called for each `/health/ready`, so it must return quickly. Returns a sentence that says why
   * requests should go to another server for now, or undefined when all is well.
   */
  problem(): string | undefined;
}
