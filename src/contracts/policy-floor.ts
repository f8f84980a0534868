// The floor of D9: no rule allows what cannot be taken back without a person's decision on itself.

import type { PolicyConfig } from './policy-config.ts';
import type { Finding } from './problem.ts';

/** @param irreversibleBy who says that a tool's writes cannot be taken back */
export function checkPolicyFloor(
  policy: PolicyConfig | undefined,
  irreversibleBy: (tool: string) => string | undefined,
): readonly Finding[] {
  return (policy?.rules ?? []).flatMap((rule, index) => {
    if (rule.then !== 'allow') return [];
    return (rule.tools ?? []).flatMap((tool, place): readonly Finding[] => {
      const by = irreversibleBy(tool);
      if (by === undefined) return [];
      const sentence = `The rule ${JSON.stringify(rule.name)} allows ${tool}, and ${by} says that it is irreversible; such a write waits for a person's decision on itself, and no rule lowers that.`;
      return [{ path: ['policy', 'rules', index, 'tools', place], sentence }];
    });
  });
}
