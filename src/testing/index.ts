export { arbLayout, arbShape } from './layouts.js';
