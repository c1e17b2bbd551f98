import fc from 'fast-check';
import { it } from 'vitest';
import { parseEntry, restamp, joinBuffers, readBatch } from '../../src/entry/index.js';
import { arbEntry, arbOuterFields, arbMessageFields, arbUnknownField, splitFields } from '../../src/testing/entries.js';
import { codecs } from '../support/codecs.js';
const cpu=(name:string,f:()=>void)=>{const a=process.cpuUsage();const t=Date.now();f();const b=process.cpuUsage(a);console.log(name,((b.user+b.system)/1000).toFixed(0)+'ms cpu',Date.now()-t+'ms wall')};
it('x',()=>{
 cpu('entry+codecs 1000',()=>{fc.sample(arbEntry(codecs),1000)});
 cpu('entry 1000',()=>{fc.sample(arbEntry(),1000)});
 cpu('outer 1000',()=>{fc.sample(arbOuterFields(),1000)});
 cpu('msg 1000',()=>{fc.sample(arbMessageFields(),1000)});
 cpu('unk 1000',()=>{fc.sample(arbUnknownField(),1000)});
 cpu('str 1000',()=>{fc.sample(fc.string({unit:'grapheme',maxLength:6}),1000)});
 const es=fc.sample(arbEntry(codecs),1000);
 cpu('restamp 1000',()=>{for(const e of es) parseEntry(joinBuffers(restamp(parseEntry(e.bytes),{replicatedFrom:'a',sourcePosition:'1:2'})))});
 cpu('split 1000',()=>{for(const e of es) splitFields(parseEntry(e.bytes).metadataBytes)});
 cpu('assert 600',()=>{fc.assert(fc.property(arbEntry(codecs),()=>{}),{numRuns:600})});
 cpu('const assert 600',()=>{const a=arbEntry(codecs);fc.assert(fc.property(a,()=>{}),{numRuns:600})});
});
