/** For mutation testing: every property runs a few times, and always with the same values. */
import fc from 'fast-check';

fc.configureGlobal({ seed: 1, numRuns: 20 });
