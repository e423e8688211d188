// An analyst's client for Node, written from the comments in protos/ alone: it asks, waits, reads its results with a
// break in the middle, and compares their digest with what the custodian has put on record.
//
//     npm install && node client.mjs PROFILE ROUND [TIMES]
//
// PROFILE is a directory that `equipoise enroll` or `equipoise login` made. Prints one JSON object a line.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';
import protobuf from 'protobufjs';

const PROTOS = process.env.EQUIPOISE_PROTOS ?? fileURLToPath(new URL('../../protos', import.meta.url));
const ANALYST = 'equipoise/v1/analyst.proto';
const PIECE = 1 << 20; // bytes of a workload in one message
const PAUSES = [250, 500, 1000, 2000, 4000, 8000]; // milliseconds: longer in all than a server takes to start again

const [profile, roundId, times = '1'] = process.argv.slice(2);
const file = (name) => readFileSync(join(profile, name));
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const say = (object) => console.log(JSON.stringify(object));
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// The exact bytes of two messages are hashed, so they are written and read here and not by gRPC.
const types = new protobuf.Root();
types.resolvePath = (_, target) => (target.startsWith('google/') ? target : join(PROTOS, target));
types.loadSync(ANALYST, { keepCase: true });
const Workload = types.lookupType('equipoise.v1.Workload');
const ResultChunk = types.lookupType('equipoise.v1.ResultChunk');

const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true, includeDirs: [PROTOS] };
const { AnalystService } = grpc.loadPackageDefinition(loader.loadSync(ANALYST, options)).equipoise.v1;
const target = JSON.parse(/^target = (".*")$/m.exec(file('profile.toml').toString())[1]);
const server = new AnalystService(
  target, grpc.credentials.createSsl(file('ca.pem'), file('key.pem'), file('certificate.pem')));

// Sends again what ended with UNAVAILABLE, at growing intervals, and what came too often, after its time.
async function again(attempt) {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      const reason = error.metadata?.get('equipoise-reason')[0];
      const wait = Number(error.metadata?.get('equipoise-retry-seconds')[0] ?? 0) * 1000;
      const helps = error.code === grpc.status.UNAVAILABLE || (reason === 'RATE' && wait > 0);
      if (!helps || failures >= PAUSES.length) throw error;
      await sleep(Math.max(wait, PAUSES[failures]));
    }
  }
}

const call = (method, request) => again(() => new Promise((done, fail) => {
  server[method](request, (error, response) => (error ? fail(error) : done(response)));
}));

// Calls `taken` with each message; a stream that it answers with false is left.
const read = (method, request, taken) => new Promise((done, fail) => {
  const stream = server[method](request);
  let left = false;
  stream.on('data', (message) => {
    if (!left && taken(message) === false) {
      left = true;
      stream.cancel();
    }
  });
  stream.on('end', done);
  stream.on('error', (error) => (left ? done() : fail(error)));
});

// The same request under the same id, as often as it is needed: it is carried out once.
function submit(workload) {
  const header = {
    round_id: roundId,
    request_id: randomBytes(16).toString('hex'),
    commitment_salt: randomBytes(32),
    workload_bytes: workload.length,
  };
  return again(() => new Promise((done, fail) => {
    const upload = server.SubmitWorkload((error, response) => (error ? fail(error) : done(response.receipt)));
    upload.write({ header });
    for (let start = 0; start < workload.length; start += PIECE) {
      upload.write({ piece: workload.subarray(start, start + PIECE) });
    }
    upload.end();
  }));
}

// All results and their digest. With `breaks` the stream is left after every message and resumed after it.
async function results(breaks) {
  let digest = sha256('equipoise stream v1\n', roundId);
  let held = 0;
  let answers = 0;
  let last = false;
  while (!last) {
    await again(() => read('StreamResults', { round_id: roundId, after_sequence: held }, ({ chunk }) => {
      const message = ResultChunk.decode(chunk);
      if (Number(message.sequence) !== held + 1) throw new Error(`message ${message.sequence} after ${held}`);
      held += 1;
      answers += message.values.length;
      last = message.last;
      digest = sha256(digest, sha256(chunk));
      return breaks ? false : undefined;
    }));
  }
  return { answers, messages: held, digest: digest.toString('hex') };
}

async function recorded() {
  let pieces = [];
  await again(() => {
    pieces = [];
    return read('DownloadEvidence', { round_id: roundId }, (message) => {
      if (message.part === 'evidence') pieces.push(message.evidence);
    });
  });
  const items = JSON.parse(Buffer.concat(pieces)).records.flatMap((record) => record.items);
  return items.map(({ content }) => JSON.parse(content)).find(({ item }) => item === 'result').stream.digest;
}

const { name, role } = await call('GetIdentity', {});
const { round } = await call('GetAnalystRound', { round_id: roundId });
const { dataset } = await call('GetDataset', { name: round.terms.dataset });
const attributes = dataset.schema.attributes.map((attribute) => attribute.name);
say({ name, role, dataset: dataset.name, attributes });

const marginal = { marginal: { attributes: attributes.slice(0, 2) } };
const workload = Buffer.from(Workload.encode({ version: 1, statements: Array(Number(times)).fill(marginal) }).finish());
const receipt = await submit(workload);
if (!sha256(workload).equals(receipt.workload_digest)) throw new Error('the receipt is for another workload');
say({ submitted: receipt.workload_digest.toString('hex'), queries: Number(receipt.queries) });

let state = '';
while (!['ROUND_STATE_RELEASED', 'ROUND_STATE_ABORTED'].includes(state)) {
  await again(() => read('WatchAnalystRound', { round_id: roundId }, (shown) => { state = shown.round.state; }));
}
if (state !== 'ROUND_STATE_RELEASED') throw new Error('the round was aborted');
const whole = await results(false);
const resumed = await results(true);
const onRecord = await recorded();
if (whole.digest !== resumed.digest) throw new Error('the stream differs when it is resumed');
if (whole.digest !== onRecord) throw new Error('the results are not those on record');
say({ ...whole, verified: true });
server.close();
