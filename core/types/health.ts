/** What a module tells of itself to load balancers: what `module.provides("health", ...)` takes. */
export interface HealthItem {
  /**
   * Asked for each `/health/ready`, so it must answer at once: a sentence on why requests should go to another server for now, or
   * undefined when all is well.
   */
  problem(): string | undefined;
}
