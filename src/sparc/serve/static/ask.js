<p>ask.js</p>
