/** For mutation testing: a property that does not ask for more runs a few times, and always with the same values. */
import fc from 'fast-check';

fc.configureGlobal({ seed: 1, numRuns: 8 });
