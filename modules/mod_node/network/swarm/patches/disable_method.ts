/**
 * Replaces a method with one that does nothing. A debounced method also drops its scheduled call.
 */
export function disableMethod(component: object, name: string): void {
  const method: unknown = Reflect.get(component, name);
  if (typeof method === "function" && "stop" in method && typeof method.stop === "function") method.stop();
  Reflect.set(component, name, () => undefined);
}
