<p>teach.js</p>
