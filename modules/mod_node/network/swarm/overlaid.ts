/** `own` with some of its members replaced; the others are its own, bound to it. */
export function withOverrides<T extends object>(own: T, members: Partial<T>): T {
  return new Proxy(own, {
    get(target, name) {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name);
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
