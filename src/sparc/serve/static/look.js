<p>look.js</p>
