export {
  type BudgetEffect,
  type BudgetOptions,
  type BudgetReport,
  type BudgetSettings,
  DEFAULT_BUDGET,
  SlowPathBudget,
  slowPathBytes,
  type ThrottledTime,
} from './budget.js';
export { RateLimit, type RateLimitEffect, type RateLimitSettings, type ReadSize } from './rate-limit.js';
