/** Permissions of modules: how they are written, what they cover, and what follows from a grant. */

export { Authority, denied } from "./authority.ts";
export { permissionChanges, settingChanges } from "./changes.ts";
export { connectItem, type Destination, hostToDial } from "./hosts.ts";
export { isEnforced, kindNames, optionsOfModules, permissionFields, permissionKinds } from "./kinds.ts";
export { PermissionLedger, type PermissionUse } from "./ledger.ts";
export { limitFields, limitsOf, type ModuleLimits } from "./limits.ts";
export { DATA, isWithin, realPath } from "./paths.ts";
export { type GuardedPath, grantedVariables, type Policy, type PolicyFacts, policyOf } from "./policy.ts";
export {
  grantText,
  itemsOf,
  type OwnFolders,
  type Permission,
  PermissionSet,
  permissionWords,
  wordsOf,
} from "./set.ts";
export {
  type ModuleSettings,
  modulesOption,
  permissionProblems,
  settingsOf,
  settingsProblems,
  unenforcedKinds,
} from "./settings.ts";
export { permissionStates } from "./states.ts";
