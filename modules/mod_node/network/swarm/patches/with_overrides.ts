/** Returns `target` with some of its members replaced. Other methods stay bound to `target`. */
export function withOverrides<T extends object>(target: T, overrides: Partial<T>): T {
  return new Proxy(target, {
    get(own, name) {
      if (Object.hasOwn(overrides, name)) return Reflect.get(overrides, name);
      const member: unknown = Reflect.get(own, name, own);
      return typeof member === "function" ? member.bind(own) : member;
    },
  });
}
