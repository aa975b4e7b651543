/** Makes a method do nothing from now on; a debounced one also drops the call that it has scheduled. */
export function disableMethod(component: object, name: string): void {
  const method: unknown = Reflect.get(component, name);
  if (typeof method === "function" && "stop" in method && typeof method.stop === "function") method.stop();
  Reflect.set(component, name, () => undefined);
}
